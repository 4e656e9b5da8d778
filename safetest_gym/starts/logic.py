"""Formulas over the columns of a state, simplified as they are built."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from safetest_gym.jani.operations import compare
from safetest_gym.starts.arithmetic import NO_VALUE, Numbers
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
    columns_of,
)
from safetest_gym.starts.intervals import (
    Intervals,
    after,
    before,
    complement,
    intersect,
    unite,
)

__all__ = ["Formulas"]

_EXACT = 2**53
"""Comparing a smaller real with an int as reals or exactly is the same."""


class Formulas(Numbers):
    """Builds formulas and numbers; equal ones are one object."""

    def __init__(self, domains: Sequence[Intervals], real: Sequence[bool]) -> None:
        super().__init__(domains, real)
        self._negations: dict[int, Formula] = {}

    def inside(self, column: int, intervals: Intervals) -> Formula:
        """The column's value is one of ``intervals``."""
        domain = self.domains[column]
        values = intersect(domain, intervals)
        if values == domain:
            return TRUE
        if not values:
            return FALSE
        scope = frozenset((column,))
        key = ("inside", column, values)
        return self.intern(key, lambda rank: Inside(column, values, scope, rank))

    def compare(self, symbol: str, left: Number, right: Number) -> Formula:
        """``left symbol right`` for one of ``= ≠ < ≤``."""
        if left is NO_VALUE or right is NO_VALUE:
            return UNDEFINED
        if isinstance(left, Constant) and isinstance(right, Constant):
            assert left.value is not None
            assert right.value is not None
            return TRUE if compare(symbol, left.value, right.value) else FALSE
        for this, other, flipped in ((left, right, False), (right, left, True)):
            if isinstance(this, Application) and this.symbol == "ite":
                if isinstance(other, Constant):
                    return self._compare_branches(symbol, this, other, flipped)
            elif isinstance(other, Constant) and this.integer and not other.integer:
                rounded = self._rounded(symbol, this, other, flipped)
                if rounded is not None:
                    return rounded
        if left.integer and right.integer:
            return self._compare_ints(symbol, self.total([(left, 1), (right, -1)]))
        return self._compare_reals(symbol, left, right)

    def junction(self, symbol: str, operands: Iterable[Formula]) -> Formula:
        """``∧`` or ``∨`` of any number of formulas."""
        neutral, decisive = (TRUE, FALSE) if symbol == "∧" else (FALSE, TRUE)
        insides: dict[int, list[Intervals]] = {}
        kept: dict[int, Formula] = {}
        stack = list(operands)
        while stack:
            operand = stack.pop()
            if operand is decisive:
                return decisive
            if isinstance(operand, Junction) and operand.symbol == symbol:
                stack.extend(operand.operands)
            elif isinstance(operand, Inside):
                insides.setdefault(operand.column, []).append(operand.intervals)
            elif operand is not neutral:
                kept[operand.rank] = operand
        for column, sets in insides.items():
            merged = self.inside(column, self._merged(symbol, column, sets))
            if merged is decisive:
                return decisive
            if merged is not neutral:
                kept[merged.rank] = merged
        if len(kept) < 2:
            return next(iter(kept.values())) if kept else neutral
        made = tuple(kept[rank] for rank in sorted(kept))
        key = (symbol, tuple(kept[rank].rank for rank in sorted(kept)))
        return self.intern(key, lambda rank: Junction(symbol, made, columns_of(made), rank))

    def negation(self, formula: Formula) -> Formula:
        """``¬``, pushed down to the atoms."""
        if isinstance(formula, Truth):
            return FALSE if formula is TRUE else TRUE if formula is FALSE else UNDEFINED
        if isinstance(formula, Inside):
            outside = complement(formula.intervals, self.real[formula.column])
            return self.inside(formula.column, outside)
        if formula.rank not in self._negations:
            self._negations[formula.rank] = self._negated(formula)
        return self._negations[formula.rank]

    def either(self, condition: Formula, then: Formula, otherwise: Formula) -> Formula:
        """``ite`` on truth values."""
        if isinstance(condition, Truth) and condition is not UNDEFINED:
            return then if condition is TRUE else otherwise
        yes = self.junction("∧", (condition, then))
        no = self.junction("∧", (self.negation(condition), otherwise))
        return self.junction("∨", (yes, no))

    def _negated(self, formula: Comparison | Junction) -> Formula:
        if isinstance(formula, Junction):
            operands: list[Formula] = []
            for operand in formula.operands:
                operands.append(self.negation(operand))
            return self.junction("∨" if formula.symbol == "∧" else "∧", operands)
        left, right = formula.left, formula.right
        if formula.symbol in ("=", "≠"):
            return self.compare("≠" if formula.symbol == "=" else "=", left, right)
        return self.compare("<" if formula.symbol == "≤" else "≤", right, left)

    def _merged(self, symbol: str, column: int, sets: Sequence[Intervals]) -> Intervals:
        if symbol == "∨":
            return unite(sets, self.real[column])
        merged = sets[0]
        for intervals in sets[1:]:
            merged = intersect(merged, intervals)
        return merged

    def _compare_branches(
        self, symbol: str, choice: Application, other: Number, flipped: bool
    ) -> Formula:
        condition, then, otherwise = choice.operands
        assert isinstance(condition, Formula)
        sides: list[Formula] = []
        for branch in (then, otherwise):
            assert isinstance(branch, Number)
            pair = (other, branch) if flipped else (branch, other)
            sides.append(self.compare(symbol, *pair))
        return self.either(condition, sides[0], sides[1])

    def _rounded(
        self, symbol: str, number: Number, real: Constant, flipped: bool
    ) -> Formula | None:
        """An int compared with a real constant, as a comparison of ints."""
        value = real.value
        assert value is not None
        if not -_EXACT < value < _EXACT:
            return None
        if symbol in ("=", "≠"):
            if value != int(value):
                return FALSE if symbol == "=" else TRUE
            return self.compare(symbol, number, self.constant(int(value)))
        if flipped:  # value < number or value ≤ number
            least = math.ceil(value) if symbol == "≤" else math.floor(value) + 1
            return self.compare("≤", self.constant(least), number)
        most = math.floor(value) if symbol == "≤" else math.ceil(value) - 1
        return self.compare("≤", number, self.constant(most))

    def _compare_ints(self, symbol: str, number: Number) -> Formula:
        """``number symbol 0``."""
        if symbol == "<":
            symbol, number = "≤", self.total([(number, 1), (self.constant(1), 1)])
        if isinstance(number, Constant):
            return self.compare(symbol, number, self.constant(0))
        constant = number.constant if isinstance(number, Sum) else 0
        terms = number.terms if isinstance(number, Sum) else ((number, 1),)
        divisor = math.gcd(*(coefficient for _, coefficient in terms))
        if symbol != "≤":
            if constant % divisor != 0:
                return FALSE if symbol == "=" else TRUE
            divisor = -divisor if terms[0][1] < 0 else divisor
        parts: list[tuple[Number, int]] = [(term, c // divisor) for term, c in terms]
        limit = -(constant // divisor) if symbol != "≤" else (-constant) // divisor
        number = self.total([*parts, (self.constant(-limit), 1)])
        if symbol == "≤" and number.high <= 0:
            return TRUE
        if number.low > 0 or (symbol != "≤" and number.high < 0):
            return TRUE if symbol == "≠" else FALSE
        if len(parts) == 1:
            return self._compare_one(symbol, parts[0], limit)
        return self._comparison(symbol, number, self.constant(0))

    def _compare_one(self, symbol: str, part: tuple[Number, int], limit: int) -> Formula:
        """``part symbol limit`` for one term with coefficient 1 or -1."""
        term, sign = part
        if isinstance(term, Column):
            if symbol == "≤":
                below = ((-math.inf, limit),) if sign == 1 else ((-limit, math.inf),)
                return self.inside(term.column, below)
            same = self.inside(term.column, ((limit, limit),))
            return same if symbol == "=" else self.negation(same)
        if isinstance(term, Application) and term.symbol == "ite":
            other = self.constant(limit * sign)
            return self._compare_branches(symbol, term, other, sign == -1)
        number = self.total([part, (self.constant(-limit), 1)])
        return self._comparison(symbol, number, self.constant(0))

    def _compare_reals(self, symbol: str, left: Number, right: Number) -> Formula:
        if isinstance(left, Column) and isinstance(right, Constant) and not left.integer:
            return self._real_inside(symbol, left.column, _as_real(right.high))
        if isinstance(right, Column) and isinstance(left, Constant) and not right.integer:
            return self._real_outside(symbol, right.column, _as_real(left.high))
        if symbol == "≤" and left.high <= right.low:
            return TRUE
        if symbol == "<" and left.high < right.low:
            return TRUE
        if left.low > right.high or (symbol == "<" and left.low >= right.high):
            return TRUE if symbol == "≠" else FALSE
        if symbol in ("=", "≠") and left.high < right.low:
            return TRUE if symbol == "≠" else FALSE
        return self._comparison(symbol, left, right)

    def _real_inside(self, symbol: str, column: int, value: float) -> Formula:
        """``column symbol value``."""
        if symbol in ("=", "≠"):
            same = self.inside(column, ((value, value),))
            return same if symbol == "=" else self.negation(same)
        most = value if symbol == "≤" else before(value, True)
        return self.inside(column, ((-math.inf, most),))

    def _real_outside(self, symbol: str, column: int, value: float) -> Formula:
        """``value symbol column``."""
        if symbol in ("=", "≠"):
            return self._real_inside(symbol, column, value)
        least = value if symbol == "≤" else after(value, True)
        return self.inside(column, ((least, math.inf),))

    def _comparison(self, symbol: str, left: Number, right: Number) -> Formula:
        key = (symbol, left.rank, right.rank)
        scope = columns_of((left, right))
        return self.intern(key, lambda rank: Comparison(symbol, left, right, scope, rank))


def _as_real(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
