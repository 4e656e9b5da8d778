"""Boxes of ints, many at once, made smaller by what a condition says of their bounds.

What is cut off surely does not satisfy the condition; what is left may not either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    UNDEFINED,
    Application,
    Column,
    Comparison,
    Constant,
    Formula,
    Inside,
    Junction,
    Number,
    Sum,
    Truth,
)
from safetest_gym.starts.intervals import Intervals

__all__ = ["Boxes", "largest"]

_TOTAL = ("ite", "min", "max", "abs", "*")
_EXACT = 2.0**53

_Ints = NDArray[Any]
_Bools = NDArray[np.bool_]
_Range = tuple[_Ints, _Ints]


def largest(formulas: Sequence[Formula]) -> int | None:
    """The largest number, or size of one, that comes up in ``formulas``.

    None if they are not about ints alone, if that is not exact, or if they have no value
    somewhere. Use inside `deep_recursion`.
    """
    known: dict[int, float] = {}
    size = max((_size(formula, known) for formula in formulas), default=0)
    return int(size) if size < _EXACT else None


def _size(node: Formula | Number, known: dict[int, float]) -> float:
    """Infinite if the node is none that `Boxes` can deal with."""
    if isinstance(node, Truth):
        return math.inf if node is UNDEFINED else 0
    if node.rank not in known:
        known[node.rank] = _computed_size(node, known)
    return known[node.rank]


def _computed_size(node: Any, known: dict[int, float]) -> float:
    if isinstance(node, Inside):
        ends = [abs(end) for pair in node.intervals for end in pair]
        return max(ends, default=0)
    parts: list[Any]
    if isinstance(node, Comparison):
        parts = [node.left, node.right]
    elif isinstance(node, Junction):
        parts = list(node.operands)
    elif not node.integer or (isinstance(node, Application) and node.symbol not in _TOTAL):
        return math.inf
    else:
        parts = list(node.operands) if isinstance(node, Application) else []
        if isinstance(node, Sum):
            total: float = abs(node.constant)
            for term, factor in node.terms:
                total += abs(factor) * _size(term, known)
            return total
    own = 0 if isinstance(node, Comparison | Junction) else max(abs(node.low), abs(node.high))
    return max([own, *(_size(part, known) for part in parts)])


class Boxes:
    """Boxes side by side.

    Attributes:
        low, high: shape (V, n): bounds, both included; arrays of their own.
        alive: which boxes have a state left, shape (n,).
    """

    def __init__(self, low: _Ints, high: _Ints) -> None:
        self.low, self.high = low, high
        self.alive = np.ones(low.shape[1], dtype=np.bool_)
        self._ranges: dict[int, _Range] = {}
        self._truths: dict[int, tuple[_Bools, _Bools]] = {}

    def require(self, formula: Formula) -> None:
        """Cut off states where ``formula`` is false."""
        self._ranges.clear()
        self._truths.clear()
        self._require(formula, self.alive.copy())

    def _require(self, formula: Formula, where: _Bools) -> None:
        """The same in the boxes of the mask ``where`` only."""
        if isinstance(formula, Truth):
            self.alive &= ~where if formula is FALSE else True
        elif isinstance(formula, Inside):
            self._require_inside(formula, where)
        elif isinstance(formula, Comparison):
            self._compare(formula, where)
        elif formula.symbol == "∧":
            for operand in formula.operands:
                self._require(operand, where)
        else:
            self._require_one(formula.operands, where)

    def _require_one(self, operands: tuple[Formula, ...], where: _Bools) -> None:
        """Of ``∨``: where all operands but one are false, that one."""
        possible = [self.truth(operand)[0] for operand in operands]
        many = np.sum(possible, axis=0)
        self.alive &= ~where | (many > 0)
        for operand, may in zip(operands, possible, strict=True):
            alone = where & may & (many == 1)
            if alone.any():
                self._require(operand, alone)

    def _require_inside(self, inside: Inside, where: _Bools) -> None:
        low, high = self.low[inside.column], self.high[inside.column]
        most = np.iinfo(low.dtype).max // 4
        least, greatest = np.full_like(low, most), np.full_like(high, -most)
        for first, last in _whole(inside.intervals):
            meets = (low <= last) & (high >= first)
            least = np.where(meets, np.minimum(least, np.maximum(low, first)), least)
            greatest = np.where(meets, np.maximum(greatest, np.minimum(high, last)), greatest)
        self._narrow(inside.column, least, greatest, where)

    def _narrow(self, column: int, low: _Ints, high: _Ints, where: _Bools) -> None:
        """Intersect a column with a range, in some boxes."""
        lows, highs = self.low[column], self.high[column]
        np.maximum(lows, low, out=lows, where=where)
        np.minimum(highs, high, out=highs, where=where)
        self.alive &= lows <= highs

    def _compare(self, comparison: Comparison, where: _Bools) -> None:
        """``left = 0``, ``left ≤ 0`` or ``left ≠ 0``."""
        low, high = self.range(comparison.left)
        if comparison.symbol == "≠":
            self.alive &= ~where | (low != 0) | (high != 0)
            return
        nothing = np.zeros_like(low)
        least = nothing if comparison.symbol == "=" else low
        self.alive &= ~where | ((low <= 0) & (high >= least))
        self._demand(comparison.left, least, nothing, where)

    def _demand(self, number: Number, low: _Ints, high: _Ints, where: _Bools) -> None:
        """Cut off states where ``number`` is not between ``low`` and ``high``."""
        if isinstance(number, Constant):
            assert number.value is not None
            self.alive &= ~where | ((low <= number.value) & (high >= number.value))
        elif isinstance(number, Column):
            self._narrow(number.column, low, high, where)
        elif isinstance(number, Sum):
            self._demand_sum(number, low, high, where)
        elif number.symbol == "ite":
            self._demand_choice(number, low, high, where)
        elif number.symbol in ("min", "max"):
            for operand in number.operands:
                assert isinstance(operand, Number)
                least, greatest = self.range(operand)
                least = np.maximum(least, low) if number.symbol == "min" else least
                greatest = np.minimum(greatest, high) if number.symbol == "max" else greatest
                self._demand(operand, least, greatest, where)

    def _demand_sum(self, number: Sum, low: _Ints, high: _Ints, where: _Bools) -> None:
        total_low, total_high = self.range(number)
        for term, factor in number.terms:
            term_low, term_high = _scaled(self.range(term), factor)
            least = low - (total_high - term_high)
            greatest = high - (total_low - term_low)
            if factor < 0:
                least, greatest = greatest, least
            if abs(factor) != 1:
                least, greatest = -(-least // factor), greatest // factor
            elif factor == -1:
                least, greatest = -least, -greatest
            first, last = int(term.low), int(term.high)  # so that numbers stay moderate
            least = np.minimum(np.maximum(least, first), last + 1)
            greatest = np.minimum(np.maximum(greatest, first - 1), last)
            self._demand(term, least, greatest, where)

    def _demand_choice(self, number: Application, low: _Ints, high: _Ints, where: _Bools) -> None:
        condition, then, otherwise = number.operands
        assert isinstance(condition, Formula)
        assert isinstance(then, Number)
        assert isinstance(otherwise, Number)
        may, may_not = self.truth(condition)
        yes, no = self.range(then), self.range(otherwise)
        may = may & (yes[0] <= high) & (yes[1] >= low)
        may_not = may_not & (no[0] <= high) & (no[1] >= low)
        self.alive &= ~where | may | may_not
        surely, never = where & may & ~may_not, where & may_not & ~may
        if surely.any():
            self._require(condition, surely)
            self._demand(then, low, high, surely)
        if never.any():
            self._exclude(condition, never)
            self._demand(otherwise, low, high, never)

    def _exclude(self, formula: Formula, where: _Bools) -> None:
        """Cut off ends of a column where ``formula`` is true; only if it is about one column."""
        if not isinstance(formula, Inside):
            return
        low, high = self.low[formula.column], self.high[formula.column]
        least, greatest = low.copy(), high.copy()
        for first, last in _whole(formula.intervals):
            least = np.where((least >= first) & (least <= last), last + 1, least)
        for first, last in reversed(_whole(formula.intervals)):
            greatest = np.where((greatest >= first) & (greatest <= last), first - 1, greatest)
        self._narrow(formula.column, least, greatest, where)

    def truth(self, formula: Formula) -> tuple[_Bools, _Bools]:
        """Per box: may ``formula`` be true, may it be false? As it was when first asked."""
        if isinstance(formula, Truth):
            shape = self.alive.shape
            return np.full(shape, formula is TRUE), np.full(shape, formula is FALSE)
        if formula.rank not in self._truths:
            self._truths[formula.rank] = self._judged(formula)
        return self._truths[formula.rank]

    def _judged(self, formula: Inside | Comparison | Junction) -> tuple[_Bools, _Bools]:
        if isinstance(formula, Inside):
            low, high = self.low[formula.column], self.high[formula.column]
            may, within = np.zeros_like(self.alive), np.zeros_like(self.alive)
            for first, last in _whole(formula.intervals):
                may |= (low <= last) & (high >= first)
                within |= (low >= first) & (high <= last)
            return may, ~within
        if isinstance(formula, Comparison):
            low, high = self.range(formula.left)
            if formula.symbol == "≤":
                return low <= 0, high > 0
            may, surely = (low <= 0) & (high >= 0), (low == 0) & (high == 0)
            return (may, ~surely) if formula.symbol == "=" else (~surely, may)
        parts = [self.truth(operand) for operand in formula.operands]
        true, false = [part[0] for part in parts], [part[1] for part in parts]
        both, any_ = np.logical_and.reduce, np.logical_or.reduce
        if formula.symbol == "∧":
            return both(true), any_(false)
        return any_(true), both(false)

    def range(self, number: Number) -> _Range:
        """Bounds per box, as they were when first asked for; columns' own as they are."""
        if isinstance(number, Constant):
            assert isinstance(number.value, int)
            value = np.full(self.alive.shape, number.value, dtype=self.low.dtype)
            return value, value
        if isinstance(number, Column):
            return self.low[number.column], self.high[number.column]
        if number.rank not in self._ranges:
            self._ranges[number.rank] = self._computed(number)
        return self._ranges[number.rank]

    def _computed(self, number: Sum | Application) -> _Range:
        if isinstance(number, Sum):
            low = np.full(self.alive.shape, number.constant, dtype=self.low.dtype)
            high = low.copy()
            for term, factor in number.terms:
                term_low, term_high = _scaled(self.range(term), factor)
                low += term_low
                high += term_high
            return low, high
        if number.symbol == "ite":
            condition, *branches = number.operands
            assert isinstance(condition, Formula)
            may, may_not = self.truth(condition)
            yes, no = (self.range(branch) for branch in branches if isinstance(branch, Number))
            least, greatest = np.minimum(yes[0], no[0]), np.maximum(yes[1], no[1])
            low = np.where(may, np.where(may_not, least, yes[0]), no[0])
            return low, np.where(may, np.where(may_not, greatest, yes[1]), no[1])
        if number.symbol in ("min", "max"):
            ranges = [self.range(part) for part in number.operands if isinstance(part, Number)]
            extreme = np.minimum if number.symbol == "min" else np.maximum
            return (
                extreme.reduce([part[0] for part in ranges]),
                extreme.reduce([part[1] for part in ranges]),
            )
        low = np.full(self.alive.shape, int(number.low), dtype=self.low.dtype)
        return low, np.full_like(low, int(number.high))


def _scaled(bounds: _Range, factor: int) -> _Range:
    low, high = bounds
    return (low * factor, high * factor) if factor > 0 else (high * factor, low * factor)


def _whole(intervals: Intervals) -> list[tuple[int, int]]:
    return [(int(low), int(high)) for low, high in intervals]
