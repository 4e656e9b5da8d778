"""Bounds of expressions over many boxes at once.

A box is a row of ``lower`` and one of ``upper``, closed, float64, one entry per variable.
Rounding is monotone, so operations on the ends bound what the task itself computes in
IEEE doubles. Integers are exact below 2**53; beyond that, and where nothing better is
known, bounds are infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.rewrite import ATTEMPT, REAL
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable

__all__ = ["Bounds", "Floats", "Interval"]

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]
"""Least and greatest value per box; of conditions 0 and 1."""

_EXACT = 2.0**53
_COMPARISONS = ("=", "≠", "<", "≤")


class Bounds:
    """Intervals of call-free expressions over the boxes ``lower``, ``upper``, (n, V)."""

    def __init__(self, columns: Mapping[Variable, int], lower: Floats, upper: Floats) -> None:
        self._columns = columns
        self._lower, self._upper = lower, upper
        self._memo: dict[int, tuple[Expression, Interval]] = {}

    def of(self, expression: Expression) -> Interval:
        """Bounds of its value, where it has one."""
        if isinstance(expression, Literal):
            value = float(expression.value)
            return np.full(len(self._lower), value), np.full(len(self._lower), value)
        if isinstance(expression, Reference):
            column = self._columns[expression.variable]
            return self._lower[:, column], self._upper[:, column]
        found = self._memo.get(id(expression))
        if found is None:
            assert isinstance(expression, Operation), "calls are inlined first"
            with np.errstate(all="ignore"):
                found = (expression, self._operation(expression))
            self._memo[id(expression)] = found
        return found[1]

    def _operation(self, expression: Operation) -> Interval:
        operator = expression.operator
        parts = [self.of(operand) for operand in expression.operands]
        if operator in _COMPARISONS:
            return _comparison(operator, parts[0], parts[1])
        rule = _RULES.get(operator)
        if rule is None:
            return self._anything()
        low, high = rule(parts)
        if expression.kind == "int":
            low = np.where(np.abs(low) > _EXACT, -np.inf, low)
            high = np.where(np.abs(high) > _EXACT, np.inf, high)
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def _anything(self) -> Interval:
        return np.full(len(self._lower), -np.inf), np.full(len(self._lower), np.inf)


def _comparison(operator: str, left: Interval, right: Interval) -> Interval:
    if operator in ("=", "≠"):
        apart = (left[1] < right[0]) | (right[1] < left[0])
        same = (left[0] == left[1]) & (right[0] == right[1]) & (left[0] == right[0])
        if operator == "=":
            return same.astype(np.float64), (~apart).astype(np.float64)
        return apart.astype(np.float64), (~same).astype(np.float64)
    if operator == "<":
        always, never = left[1] < right[0], left[0] >= right[1]
    else:
        always, never = left[1] <= right[0], left[0] > right[1]
    return always.astype(np.float64), (~never).astype(np.float64)


def _sum(parts: Sequence[Interval]) -> Interval:
    low, high = parts[0]
    for part in parts[1:]:
        low, high = low + part[0], high + part[1]
    return low, high


def _product(parts: Sequence[Interval]) -> Interval:
    total = parts[0]
    for part in parts[1:]:
        total = _corners(np.multiply, total, part)
    return total


def _quotient(parts: Sequence[Interval]) -> Interval:
    top, bottom = parts
    low, high = _corners(np.divide, top, bottom)
    crossing = (bottom[0] <= 0) & (bottom[1] >= 0)
    return np.where(crossing, -np.inf, low), np.where(crossing, np.inf, high)


def _corners(operation: Callable[[Any, Any], Any], first: Interval, second: Interval) -> Interval:
    corners = np.stack([operation(a, b) for a in first for b in second])
    return corners.min(axis=0), corners.max(axis=0)  # not a number stays one


def _modulo(parts: Sequence[Interval]) -> Interval:
    top, bottom = parts
    plain = (top[0] >= 0) & (top[1] < bottom[0])
    low = np.where(plain, top[0], np.minimum(0, bottom[0] + 1))
    return low, np.where(plain, top[1], np.maximum(0, bottom[1] - 1))


def _extremum(pick: Callable[[Any, Any], Any]) -> Callable[[Sequence[Interval]], Interval]:
    def rule(parts: Sequence[Interval]) -> Interval:
        low, high = parts[0]
        for part in parts[1:]:
            low, high = pick(low, part[0]), pick(high, part[1])
        return low, high

    return rule


def _absolute(parts: Sequence[Interval]) -> Interval:
    ((low, high),) = parts
    crossing = (low <= 0) & (high >= 0)
    least = np.where(crossing, 0.0, np.minimum(np.abs(low), np.abs(high)))
    return least, np.maximum(np.abs(low), np.abs(high))


def _choice(parts: Sequence[Interval]) -> Interval:
    test, then, other = parts
    low = np.where(test[0] == 1, then[0], np.where(test[1] == 0, other[0], np.inf))
    high = np.where(test[0] == 1, then[1], np.where(test[1] == 0, other[1], -np.inf))
    open_ = (test[0] == 0) & (test[1] == 1)
    low = np.where(open_, np.minimum(then[0], other[0]), low)
    return low, np.where(open_, np.maximum(then[1], other[1]), high)


def _monotone(operation: Callable[[Any], Any]) -> Callable[[Sequence[Interval]], Interval]:
    return lambda parts: (operation(parts[0][0]), operation(parts[0][1]))


def _wave(parts: Sequence[Interval]) -> Interval:
    return np.full(len(parts[0][0]), -1.0), np.full(len(parts[0][0]), 1.0)


_RULES: dict[str, Callable[[Sequence[Interval]], Interval]] = {
    "+": _sum,
    "-": lambda p: (p[0][0] - p[1][1], p[0][1] - p[1][0]),
    "*": _product,
    "/": _quotient,
    "%": _modulo,
    "min": _extremum(np.minimum),
    "max": _extremum(np.maximum),
    "abs": _absolute,
    "sgn": _monotone(np.sign),
    "floor": _monotone(np.floor),
    "ceil": _monotone(np.ceil),
    "trc": _monotone(np.trunc),
    REAL: lambda p: p[0],
    ATTEMPT: lambda p: (np.minimum(p[0][0], p[1][0]), np.maximum(p[0][1], p[1][1])),
    "ite": _choice,
    "¬": lambda p: (1 - p[0][1], 1 - p[0][0]),
    "∧": _extremum(np.minimum),
    "∨": _extremum(np.maximum),
    "sin": _wave,
    "cos": _wave,
}
