"""What JANI's operators compute, on plain Python values.

The one table that folding and `safetest_gym.engine.evaluation` share. Ints are exact,
reals are doubles; who calls decides how large a result may be. Where there is no value an
`ArithmeticError` or `ValueError` says so, or the result is no finite number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from safetest_gym.jani.tree import Value

__all__ = [
    "COMPARISONS",
    "INT_OPERATIONS",
    "MAX_BITS",
    "REAL_FUNCTIONS",
    "REAL_OPERATIONS",
    "TO_INT",
    "comparable",
    "compare",
]

MAX_BITS = 1 << 19
"""Longer ints are not computed."""


def compare(symbol: str, left: Value, right: Value) -> bool:
    """``left symbol right`` for ``= ≠ < ≤``; ints with ints exactly, else as reals."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = comparable(left), comparable(right)
    return bool(COMPARISONS[symbol](left, right))


def comparable(value: Value) -> float:
    """``value`` as a real; an int beyond the reals is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError("a negative exponent needs a real base or exponent")
    if base.bit_length() * exponent > MAX_BITS and abs(base) > 1:
        raise OverflowError
    return int(base**exponent)


def _product(left: int, right: int) -> int:
    if left.bit_length() + right.bit_length() > MAX_BITS + 1:
        raise OverflowError
    return left * right


def _sign(value: Value) -> int:
    return (value > 0) - (value < 0)


def _inverse(value: float) -> float:
    return 1.0 / value


def _inverse_hyperbolic(function: Callable[[float], float]) -> Callable[[float], float]:
    """``1 / function``; 0 far from 0, where the function is too large for a double."""

    def inverse(value: float) -> float:
        try:
            return 1.0 / function(value)
        except OverflowError:
            return 0.0

    return inverse


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "≠": operator.ne,
    "<": operator.lt,
    "≤": operator.le,
}
TO_INT: dict[str, Callable[[Value], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trc": math.trunc,
    "sgn": _sign,
}
INT_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _product,
    "%": operator.mod,
    "pow": _power,
    "min": min,
    "max": max,
}
REAL_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "pow": math.pow,
    "log": math.log,
    "min": min,
    "max": max,
}
REAL_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": math.fabs,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "cot": lambda x: _inverse(math.tan(x)),
    "sec": lambda x: _inverse(math.cos(x)),
    "csc": lambda x: _inverse(math.sin(x)),
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "acot": lambda x: math.pi / 2 - math.atan(x),
    "asec": lambda x: math.acos(_inverse(x)),
    "acsc": lambda x: math.asin(_inverse(x)),
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "coth": lambda x: _inverse(math.tanh(x)),
    "sech": _inverse_hyperbolic(math.cosh),
    "csch": _inverse_hyperbolic(math.sinh),
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "acoth": lambda x: math.atanh(_inverse(x)),
    "asech": lambda x: math.acosh(_inverse(x)),
    "acsch": lambda x: math.asinh(_inverse(x)),
}
"""Functions of one real; ``abs`` also has an int form."""
