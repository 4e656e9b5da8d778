"""Conditions on many states at once, with numpy; ints are exact below 2**53."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.jani.depth import deep_recursion
from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    Column,
    Comparison,
    Constant,
    Formula,
    Inside,
    Number,
    Sum,
    Truth,
)

__all__ = ["holds_in"]

_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]


def holds_in(formula: Formula, states: NDArray[Any]) -> _Bools:
    """Per row of ``states``: does ``formula`` hold there? Not where it has no value."""
    with deep_recursion(), np.errstate(all="ignore"):
        true, false = _Bulk(states).formula(formula)
    return true & ~false


class _Bulk:
    """Answers per node as (may be true, may be false): both where there is no value."""

    def __init__(self, states: NDArray[Any]) -> None:
        self._states = states
        self._truths: dict[int, tuple[_Bools, _Bools]] = {}
        self._values: dict[int, _Floats] = {}

    def formula(self, formula: Formula) -> tuple[_Bools, _Bools]:
        if isinstance(formula, Truth):
            shape = len(self._states)
            return np.full(shape, formula is not FALSE), np.full(shape, formula is not TRUE)
        if formula.rank not in self._truths:
            self._truths[formula.rank] = self._computed(formula)
        return self._truths[formula.rank]

    def _computed(self, formula: Formula) -> tuple[_Bools, _Bools]:
        if isinstance(formula, Inside):
            column = self._states[:, formula.column]
            inside = np.zeros(len(column), dtype=np.bool_)
            for low, high in formula.intervals:
                inside |= (column >= low) & (column <= high)
            return inside, ~inside
        if isinstance(formula, Comparison):
            left, right = self.number(formula.left), self.number(formula.right)
            undefined = np.isnan(left) | np.isnan(right)
            result = _COMPARISONS[formula.symbol](left, right)
            return result | undefined, ~result | undefined
        assert not isinstance(formula, Truth)
        true, false = self.formula(formula.operands[0])
        for operand in formula.operands[1:]:
            other_true, other_false = self.formula(operand)
            if formula.symbol == "∧":
                true, false = true & other_true, false | other_false
            else:
                true, false = true | other_true, false & other_false
        return true, false

    def number(self, number: Number) -> _Floats:
        """Values; not a number where there is none."""
        if isinstance(number, Constant):
            constant = np.nan if number.value is None else float(number.value)
            return np.full(len(self._states), constant)
        if isinstance(number, Column):
            return self._states[:, number.column].astype(np.float64)
        if number.rank not in self._values:
            value = self._sum(number) if isinstance(number, Sum) else self._application(number)
            self._values[number.rank] = value
        return self._values[number.rank]

    def _sum(self, number: Sum) -> _Floats:
        total = np.full(len(self._states), float(number.constant))
        for term, coefficient in number.terms:
            total += self.number(term) * float(coefficient)
        return total

    def _application(self, number: Number) -> _Floats:
        assert not isinstance(number, Constant | Column | Sum)
        if number.symbol == "ite":
            condition, then, otherwise = number.operands
            assert isinstance(condition, Formula)
            assert isinstance(then, Number)
            assert isinstance(otherwise, Number)
            true, false = self.formula(condition)
            chosen = np.where(true, self.number(then), self.number(otherwise))
            return np.where(true & false, np.nan, chosen)
        values: list[_Floats] = []
        for operand in number.operands:
            assert isinstance(operand, Number)
            values.append(self.number(operand))
        if number.symbol in _UNARY:
            result = _UNARY[number.symbol](values[0])
        else:
            result = values[0]
            for value in values[1:]:
                result = _BINARY[number.symbol](result, value)
        return np.where(np.isfinite(result), result, np.nan)


_COMPARISONS: dict[str, Callable[[_Floats, _Floats], _Bools]] = {
    "=": np.equal,
    "≠": np.not_equal,
    "<": np.less,
    "≤": np.less_equal,
}
_BINARY: dict[str, Callable[[_Floats, _Floats], _Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.mod,
    "pow": np.power,
    "log": lambda x, base: np.log(x) / np.log(base),
    "min": np.minimum,
    "max": np.maximum,
}
_UNARY: dict[str, Callable[[_Floats], _Floats]] = {
    "abs": np.abs,
    "sgn": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trc": np.trunc,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "cot": lambda x: 1 / np.tan(x),
    "sec": lambda x: 1 / np.cos(x),
    "csc": lambda x: 1 / np.sin(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "acot": lambda x: np.pi / 2 - np.arctan(x),
    "asec": lambda x: np.arccos(1 / x),
    "acsc": lambda x: np.arcsin(1 / x),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "coth": lambda x: 1 / np.tanh(x),
    "sech": lambda x: 1 / np.cosh(x),
    "csch": lambda x: 1 / np.sinh(x),
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "acoth": lambda x: np.arctanh(1 / x),
    "asech": lambda x: np.arccosh(1 / x),
    "acsch": lambda x: np.arcsinh(1 / x),
}
