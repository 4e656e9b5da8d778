"""Values of operations on literals, as `safetest_gym.jani.tree` defines them.

Ints are exact and may be large; reals are doubles and finite. An int that meets a real
becomes a real first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence

from safetest_gym.jani.tree import (
    Call,
    Expression,
    Function,
    Kind,
    Literal,
    Operation,
    Parameter,
    Value,
)

__all__ = ["REAL_FUNCTIONS", "NoValueError", "apply", "call"]

MAX_BITS = 1 << 19
"""Longer ints are not computed."""

MAX_STEPS = 200_000
"""Longer evaluations of one function call are given up."""


class NoValueError(Exception):
    """An operation on literals has no value; the text says why."""


def apply(symbol: str, kind: Kind, values: Sequence[Value]) -> Value:
    """The value of an operation that yields ``kind``.

    Raises:
        NoValueError: it has none.
    """
    try:
        if symbol in _COMPARISONS:
            left, right = values
            if isinstance(left, float) or isinstance(right, float):
                left, right = _comparable(left), _comparable(right)
            return bool(_COMPARISONS[symbol](left, right))
        if symbol in _TO_INT:
            return _TO_INT[symbol](values[0])
        if kind == "int":
            return _apply_int(symbol, values)
        if kind == "real":
            return _apply_real(symbol, values)
    except ZeroDivisionError:
        raise NoValueError("division by zero") from None
    except OverflowError:
        raise NoValueError("the result is too large") from None
    except ValueError:
        raise NoValueError("the operands are outside the operator's domain") from None
    return _apply_bool(symbol, values)


def _apply_bool(symbol: str, values: Sequence[Value]) -> bool:
    if symbol == "¬":
        return not values[0]
    return all(values) if symbol == "∧" else any(values)


def _apply_int(symbol: str, values: Sequence[Value]) -> int:
    result = int(values[0])
    if symbol == "abs":
        return abs(result)
    for value in values[1:]:
        result = _INT_OPERATIONS[symbol](result, int(value))
    if result.bit_length() > MAX_BITS:
        raise OverflowError
    return result


def _apply_real(symbol: str, values: Sequence[Value]) -> float:
    if symbol in REAL_FUNCTIONS:
        result = REAL_FUNCTIONS[symbol](float(values[0]))
    elif symbol == "/":
        result = values[0] / values[1]
    else:
        result = float(values[0])
        for value in values[1:]:
            result = _REAL_OPERATIONS[symbol](result, float(value))
    if not math.isfinite(result):
        raise OverflowError
    return result


def _comparable(value: Value) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise NoValueError("a negative exponent of an int; write the base as a real")
    if base.bit_length() * exponent > MAX_BITS and abs(base) > 1:
        raise OverflowError
    return int(base**exponent)


def _product(left: int, right: int) -> int:
    if left.bit_length() + right.bit_length() > MAX_BITS + 1:
        raise OverflowError
    return left * right


def _inverse(value: float) -> float:
    return 1.0 / value


def _inverse_hyperbolic(function: Callable[[float], float]) -> Callable[[float], float]:
    def inverse(value: float) -> float:
        try:
            return 1.0 / function(value)
        except OverflowError:
            return math.copysign(0.0, value) if function is math.sinh else 0.0

    return inverse


def _sign(value: Value) -> int:
    return (value > 0) - (value < 0)


_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "≠": operator.ne,
    "<": operator.lt,
    "≤": operator.le,
}
_TO_INT: dict[str, Callable[[Value], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trc": math.trunc,
    "sgn": _sign,
}
_INT_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _product,
    "%": operator.mod,
    "pow": _power,
    "min": min,
    "max": max,
}
_REAL_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
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


def call(function: Function, arguments: Sequence[Value]) -> Value | None:
    """The value of a call, or None if the function reads variables.

    Raises:
        NoValueError: it has no value, or needs more than `MAX_STEPS`.
    """
    evaluation = _Evaluation()
    try:
        return evaluation.call(function, arguments)
    except _NotConstantError:
        return None


class _NotConstantError(Exception):
    pass


class _Evaluation:
    """One evaluation; equal calls are evaluated once."""

    def __init__(self) -> None:
        self._steps = 0
        self._known: dict[tuple[Function, tuple[Value, ...]], Value] = {}

    def call(self, function: Function, arguments: Sequence[Value]) -> Value:
        values: list[Value] = []
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            values.append(_as_kind(argument, parameter.kind))
        key = (function, tuple(values))
        if key not in self._known:
            parameters = dict(zip(function.parameters, values, strict=True))
            value = self._evaluate(function.body, parameters)
            self._known[key] = _as_kind(value, function.kind)
        return self._known[key]

    def _evaluate(self, node: Expression, parameters: Mapping[Parameter, Value]) -> Value:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise NoValueError(f"evaluating it takes more than {MAX_STEPS} steps")
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Parameter):
            return parameters[node]
        if isinstance(node, Operation):
            return self._operation(node, parameters)
        if isinstance(node, Call):
            arguments: list[Value] = []
            for argument in node.arguments:
                arguments.append(self._evaluate(argument, parameters))
            return self.call(node.function, arguments)
        raise _NotConstantError

    def _operation(self, node: Operation, parameters: Mapping[Parameter, Value]) -> Value:
        if node.operator in ("∧", "∨"):
            for operand in node.operands:
                if self._evaluate(operand, parameters) is (node.operator == "∨"):
                    return node.operator == "∨"
            return node.operator == "∧"
        if node.operator == "ite":
            condition, then, otherwise = node.operands
            chosen = then if self._evaluate(condition, parameters) else otherwise
            return _as_kind(self._evaluate(chosen, parameters), node.kind)
        values: list[Value] = []
        for operand in node.operands:
            values.append(self._evaluate(operand, parameters))
        return apply(node.operator, node.kind, values)


def _as_kind(value: Value, kind: Kind) -> Value:
    if kind == "real" and not isinstance(value, float):
        try:
            return float(value)
        except OverflowError:
            raise NoValueError("an int too large for a real") from None
    return value
