"""What is left of a formula when a column gets a value, and which values make a difference."""

from __future__ import annotations

from collections.abc import Sequence

from safetest_gym.jani.tree import Kind
from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    Application,
    Column,
    Comparison,
    Formula,
    Inside,
    Junction,
    Number,
    Sum,
)
from safetest_gym.starts.intervals import after, holds
from safetest_gym.starts.logic import Formulas

__all__ = ["Restriction", "breakpoints"]


class Restriction:
    """Gives ``column`` one value, in any number of formulas."""

    def __init__(self, formulas: Formulas, column: int, value: float) -> None:
        self._formulas = formulas
        self._column = column
        self._value = value
        self._known: dict[int, Formula | Number] = {}

    def formula(self, formula: Formula) -> Formula:
        """``formula`` with the value in place of the column."""
        if self._column not in formula.scope:
            return formula
        if isinstance(formula, Inside):
            return TRUE if holds(formula.intervals, self._value) else FALSE
        known = self._known.get(formula.rank)
        if isinstance(known, Formula):
            return known
        if isinstance(formula, Comparison):
            left, right = self.number(formula.left), self.number(formula.right)
            result = self._formulas.compare(formula.symbol, left, right)
        else:
            assert isinstance(formula, Junction)
            operands: list[Formula] = []
            for operand in formula.operands:
                operands.append(self.formula(operand))
            result = self._formulas.junction(formula.symbol, operands)
        self._known[formula.rank] = result
        self._formulas.work += 1
        return result

    def number(self, number: Number) -> Number:
        """``number`` with the value in place of the column."""
        if self._column not in number.scope:
            return number
        if isinstance(number, Column):
            return self._formulas.constant(self._value)
        known = self._known.get(number.rank)
        if isinstance(known, Number):
            return known
        result = self._sum(number) if isinstance(number, Sum) else self._application(number)
        self._known[number.rank] = result
        self._formulas.work += 1
        return result

    def _sum(self, number: Sum) -> Number:
        parts: list[tuple[Number, int]] = [(self._formulas.constant(number.constant), 1)]
        for term, coefficient in number.terms:
            parts.append((self.number(term), coefficient))
        return self._formulas.total(parts)

    def _application(self, number: Number) -> Number:
        assert isinstance(number, Application)
        kind: Kind = "int" if number.integer else "real"
        numbers: list[Number] = []
        condition: Formula | None = None
        for operand in number.operands:
            if isinstance(operand, Formula):
                condition = self.formula(operand)
            else:
                numbers.append(self.number(operand))
        if condition is not None:
            return self._formulas.choice(condition, numbers[0], numbers[1], kind)
        return self._formulas.apply(number.symbol, numbers, kind)


def breakpoints(formulas: Sequence[Formula], column: int, real: bool) -> set[float] | None:
    """Where the values of ``column`` start to act differently in any of ``formulas``.

    None if only trying every value tells.
    """
    starts: set[float] = set()
    seen: set[int] = set()
    stack = [formula for formula in formulas if column in formula.scope]
    while stack:
        formula = stack.pop()
        if formula.rank in seen:
            continue
        seen.add(formula.rank)
        if isinstance(formula, Inside):
            for low, high in formula.intervals:
                starts.update((low, after(high, real)))
        elif isinstance(formula, Junction):
            stack.extend(part for part in formula.operands if column in part.scope)
        else:
            return None
    return starts
