"""Shrink boxes to where a condition can hold, without losing a state in which it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.rewrite import REAL
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable
from safetest_gym.verify.intervals import Bounds, Floats

__all__ = ["Boxes", "Narrower"]

_SLACK = 2.0**-48
"""Relative allowance for the rounding of a few operations done backwards."""

Bools = NDArray[np.bool_]
Boxes = tuple[Floats, Floats]
"""Lower and upper ends, (n, V) each."""


class Narrower:
    """Narrows boxes over ``variables``, whose places are those in the sequence."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.columns: Mapping[Variable, int] = {v: i for i, v in enumerate(variables)}
        self.whole = np.array([v.kind != "real" for v in variables])

    def holds(self, condition: Expression, boxes: Boxes) -> tuple[Bools, Bools]:
        """Per box: does it hold everywhere, and can it hold anywhere?"""
        low, high = Bounds(self.columns, *boxes).of(condition)
        return low == 1, high == 1

    def narrow(self, condition: Expression, boxes: Boxes, wanted: bool = True) -> Bools:
        """Shrink ``boxes`` in place; per box, can the condition be as wanted in it?"""
        if isinstance(condition, Literal):
            return np.full(len(boxes[0]), bool(condition.value) is wanted)
        if isinstance(condition, Reference):
            value = np.full(len(boxes[0]), float(wanted))
            return self._push(condition, value, value, boxes)
        assert isinstance(condition, Operation), "calls are inlined first"
        operator, operands = condition.operator, condition.operands
        if operator == "¬":
            return self.narrow(operands[0], boxes, not wanted)
        if operator in ("∧", "∨"):
            if (operator == "∧") is wanted:
                return self._all(operands, boxes, wanted)
            return self._any(operands, boxes, wanted)
        if operator in ("=", "≠", "<", "≤"):
            return self._compare(operator, operands, boxes, wanted)
        low, high = Bounds(self.columns, *boxes).of(condition)
        return np.asarray(high == 1 if wanted else low == 0)

    def _all(self, operands: Sequence[Expression], boxes: Boxes, wanted: bool) -> Bools:
        alive = np.ones(len(boxes[0]), np.bool_)
        for operand in operands:
            alive &= self.narrow(operand, boxes, wanted)
            alive &= (boxes[0] <= boxes[1]).all(axis=1)
        return alive

    def _any(self, operands: Sequence[Expression], boxes: Boxes, wanted: bool) -> Bools:
        """The hull of what is left for each operand."""
        low, high = np.full_like(boxes[0], np.inf), np.full_like(boxes[1], -np.inf)
        alive = np.zeros(len(low), np.bool_)
        for operand in operands:
            part = boxes[0].copy(), boxes[1].copy()
            here = self.narrow(operand, part, wanted)
            low[here] = np.minimum(low[here], part[0][here])
            high[here] = np.maximum(high[here], part[1][here])
            alive |= here
        boxes[0][alive], boxes[1][alive] = low[alive], high[alive]
        return alive

    def _compare(
        self, operator: str, operands: Sequence[Expression], boxes: Boxes, wanted: bool
    ) -> Bools:
        left, right = operands
        if not wanted:  # ¬(a < b) is b ≤ a
            if operator in ("<", "≤"):
                return self._compare("≤" if operator == "<" else "<", (right, left), boxes, True)
            return self._compare("≠" if operator == "=" else "=", operands, boxes, True)
        bounds = Bounds(self.columns, *boxes)
        possible: Bools = bounds.of(Operation(operator, (left, right), "bool"))[1] == 1
        (left_low, left_high), (right_low, right_high) = bounds.of(left), bounds.of(right)
        if operator == "≠":
            alive = self._except(left, right_low, right_high, boxes)
            return possible & alive & self._except(right, left_low, left_high, boxes)
        if operator == "=":
            low, high = np.maximum(left_low, right_low), np.minimum(left_high, right_high)
            alive = self._push(left, low, high, boxes)
            return possible & alive & self._push(right, low, high, boxes)
        top, bottom = right_high.copy(), left_low.copy()
        if operator == "<":
            if left.kind == right.kind == "int":
                top, bottom = top - 1, bottom + 1
            else:
                top, bottom = np.nextafter(top, -np.inf), np.nextafter(bottom, np.inf)
        nothing = np.full(len(top), np.inf)
        alive = self._push(left, -nothing, top, boxes)
        return possible & alive & self._push(right, bottom, nothing, boxes)

    def _except(self, side: Expression, low: Floats, high: Floats, boxes: Boxes) -> Bools:
        """An integer variable does not have the other side's only value."""
        if isinstance(side, Reference) and side.kind != "real":
            column = self.columns[side.variable]
            boxes[0][:, column] += (low == high) & (boxes[0][:, column] == low)
            boxes[1][:, column] -= (low == high) & (boxes[1][:, column] == low)
            return np.asarray(boxes[0][:, column] <= boxes[1][:, column])
        return np.ones(len(low), np.bool_)

    def _push(self, expression: Expression, low: Floats, high: Floats, boxes: Boxes) -> Bools:
        """The value lies within ``low`` and ``high``: what of its variables?"""
        if isinstance(expression, Reference):
            column = self.columns[expression.variable]
            if self.whole[column]:
                low, high = np.ceil(low), np.floor(high)
            np.maximum(boxes[0][:, column], low, out=boxes[0][:, column])
            np.minimum(boxes[1][:, column], high, out=boxes[1][:, column])
            return np.asarray(boxes[0][:, column] <= boxes[1][:, column])
        alive = np.ones(len(low), np.bool_)
        if not isinstance(expression, Operation):
            return alive
        operator, operands = expression.operator, expression.operands
        if operator == REAL:
            return self._push(operands[0], low, high, boxes)
        if operator in ("+", "-"):
            for number in range(len(operands)):
                alive &= self._push_term(expression, number, low, high, boxes)
        elif operator == "*" and len(operands) == 2:
            for factor, other in (operands, operands[::-1]):
                if isinstance(other, Literal) and other.value != 0:
                    alive &= self._push_factor(factor, float(other.value), low, high, boxes)
        return alive

    def _push_term(
        self, total: Operation, number: int, low: Floats, high: Floats, boxes: Boxes
    ) -> Bools:
        bounds = Bounds(self.columns, *boxes)
        signs = [-1.0 if total.operator == "-" and i else 1.0 for i in range(len(total.operands))]
        size = np.maximum(_size(low), _size(high))
        for i, operand in enumerate(total.operands):
            ends = bounds.of(operand)
            size = size + np.maximum(_size(ends[0]), _size(ends[1]))
            if i != number:
                ends = ends if signs[i] > 0 else (-ends[1], -ends[0])
                low, high = low - ends[1], high - ends[0]
        low, high = _widened(low, high, size)
        if signs[number] < 0:
            low, high = -high, -low
        return self._push(total.operands[number], low, high, boxes)

    def _push_factor(
        self, factor: Expression, other: float, low: Floats, high: Floats, boxes: Boxes
    ) -> Bools:
        ends = (low / other, high / other) if other > 0 else (high / other, low / other)
        size = np.maximum(_size(ends[0]), _size(ends[1]))
        return self._push(factor, *_widened(*ends, size), boxes)


def _size(values: Floats) -> Floats:
    return np.where(np.isfinite(values), np.abs(values), 0.0)


def _widened(low: Floats, high: Floats, size: Floats) -> tuple[Floats, Floats]:
    low = np.where(np.isnan(low), -np.inf, low - _SLACK * size)
    return low, np.where(np.isnan(high), np.inf, high + _SLACK * size)
