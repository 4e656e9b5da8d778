"""From a condition to formulas over columns whose domains are as small as it makes them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.errors import StartError
from safetest_gym.jani.tree import Expression, Variable
from safetest_gym.starts.bounds import implied
from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    Column,
    Comparison,
    Formula,
    Junction,
)
from safetest_gym.starts.intervals import Intervals, discrete, intersect
from safetest_gym.starts.logic import Formulas
from safetest_gym.starts.translation import Translator

__all__ = ["conjuncts_of", "relaxed", "require_bounded", "tightened"]

_ROUNDS = 30
_LARGEST = sys.float_info.max
_EXTREMES = {True: (-_LARGEST, _LARGEST), False: (INT_MIN, INT_MAX)}


def tightened(variables: Sequence[Variable], condition: Expression) -> tuple[Formulas, Formula]:
    """``condition`` as a formula, over the values the variables can have where it holds.

    The formula is `FALSE` if no state satisfies it for reasons of bounds alone.
    Use inside `deep_recursion`.
    """
    columns = {variable: column for column, variable in enumerate(variables)}
    real = [variable.kind == "real" for variable in variables]
    domains = [_declared(variable) for variable in variables]
    if not all(domains):
        return Formulas(domains, real), FALSE
    for _ in range(_ROUNDS):
        formulas = Formulas(domains, real)
        formula = Translator(formulas, columns).formula(condition)
        smaller = list(domains)
        for column, intervals in implied(formula, formulas, {}).items():
            smaller[column] = _within(variables[column], intersect(domains[column], intervals))
        if not all(smaller):
            return formulas, FALSE
        if smaller == domains:
            break
        domains = smaller
    return formulas, formula


def conjuncts_of(formula: Formula) -> list[Formula]:
    """The formulas that must all hold."""
    if formula is TRUE:
        return []
    if isinstance(formula, Junction) and formula.symbol == "∧":
        return list(formula.operands)
    return [formula]


def relaxed(formula: Formula, formulas: Formulas) -> Formula:
    """``formula`` with `TRUE` for comparisons a diagram cannot decide; implied by it.

    Those are comparisons of reals with each other. Use inside `deep_recursion`.
    """
    return _relaxed(formula, formulas, {})


def _relaxed(formula: Formula, formulas: Formulas, known: dict[int, Formula]) -> Formula:
    if isinstance(formula, Comparison):
        return formula if _decidable(formula, formulas) else TRUE
    if not isinstance(formula, Junction):
        return formula
    if formula.rank not in known:
        operands: list[Formula] = []
        for operand in formula.operands:
            operands.append(_relaxed(operand, formulas, known))
        known[formula.rank] = formulas.junction(formula.symbol, operands)
    return known[formula.rank]


def _decidable(comparison: Comparison, formulas: Formulas) -> bool:
    """Does it come down to an interval of one real, once all ints are known?"""
    dense = [
        column
        for column in comparison.scope
        if formulas.real[column] and not discrete(formulas.domains[column])
    ]
    if not dense:
        return True
    sides = (comparison.left, comparison.right)
    alone = [side for side in sides if isinstance(side, Column) and side.column == dense[0]]
    others = [side for side in sides if dense[0] not in side.scope]
    return len(dense) == 1 and len(alone) == 1 and len(others) == 1


def _within(variable: Variable, intervals: Intervals) -> Intervals:
    """``intervals``, unbounded where they pass the numbers that a variable can hold."""
    if not intervals:
        return intervals
    least, greatest = _EXTREMES[variable.kind == "real"]
    ends = list(intervals)
    if ends[0][0] < least:
        ends[0] = (-math.inf, ends[0][1])
    if ends[-1][1] > greatest:
        ends[-1] = (ends[-1][0], math.inf)
    return tuple(ends)


def _declared(variable: Variable) -> Intervals:
    low = -math.inf if variable.lower is None else variable.lower
    high = math.inf if variable.upper is None else variable.upper
    if variable.kind == "real":
        low, high = float(low), float(high)
    else:
        low, high = _as_int(low), _as_int(high)
    return ((low, high),) if low <= high else ()


def _as_int(value: float) -> float:
    return value if value in (math.inf, -math.inf) else int(value)


def require_bounded(variables: Sequence[Variable], formulas: Formulas) -> None:
    """Raise `StartError` for a variable that can have values beyond all bounds, or 64 bits."""
    for variable, domain in zip(variables, formulas.domains, strict=True):
        least, greatest = _EXTREMES[variable.kind == "real"]
        if domain[0][0] < least or domain[-1][1] > greatest:
            side = "least" if domain[0][0] < least else "greatest"
            raise StartError(
                f"variable {variable.name!r} has no {side} value, neither declared nor by the "
                "start condition; bound it in the condition"
            )
