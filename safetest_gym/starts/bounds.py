"""Bounds that a formula implies for the columns, by interval propagation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from safetest_gym.starts.formula import (
    Column,
    Comparison,
    Formula,
    Inside,
    Junction,
    Sum,
)
from safetest_gym.starts.intervals import Intervals, intersect, unite
from safetest_gym.starts.linear import linear_difference
from safetest_gym.starts.logic import Formulas

__all__ = ["implied"]

_SLACK = 1e-9
"""Relative room for the rounding of real operations."""

Bounds = dict[int, Intervals]


def implied(formula: Formula, formulas: Formulas, known: dict[int, Bounds]) -> Bounds:
    """Per column it bounds, a superset of the values with which ``formula`` can hold.

    ``known`` is filled with the answers by rank. Use inside `deep_recursion`.
    """
    if isinstance(formula, Inside):
        return {formula.column: formula.intervals}
    if not isinstance(formula, Junction | Comparison):
        return {}
    if formula.rank not in known:
        if isinstance(formula, Comparison):
            known[formula.rank] = _compared(formula, formulas)
        else:
            parts: list[Bounds] = []
            for operand in formula.operands:
                parts.append(implied(operand, formulas, known))
            join = _all if formula.symbol == "∧" else _any
            known[formula.rank] = join(parts, formulas)
    return known[formula.rank]


def _all(parts: Sequence[Bounds], formulas: Formulas) -> Bounds:
    bounds: Bounds = {}
    for part in parts:
        for column, intervals in part.items():
            bounds[column] = intersect(bounds.get(column, intervals), intervals)
    return bounds


def _any(parts: Sequence[Bounds], formulas: Formulas) -> Bounds:
    common = set(parts[0]).intersection(*parts[1:])
    return {
        column: unite([part[column] for part in parts], formulas.real[column])
        for column in sorted(common)
    }


def _compared(comparison: Comparison, formulas: Formulas) -> Bounds:
    if comparison.symbol == "≠":
        return {}
    if comparison.left.integer and comparison.right.integer:
        return _int_bounds(comparison, formulas)
    return _real_bounds(comparison, formulas)


def _int_bounds(comparison: Comparison, formulas: Formulas) -> Bounds:
    """Of ``sum ≤ 0`` or ``sum = 0``."""
    number = comparison.left
    if not isinstance(number, Sum):
        return {}
    bounds: Bounds = {}
    for term, c in number.terms:
        if isinstance(term, Column):
            rest = formulas.total([(number, 1), (term, -c)])
            low, high = _quotients(-rest.low, c)
            if comparison.symbol == "=":
                other_high, other_low = _quotients(rest.high, -c)[::-1]
                low, high = max(low, other_low), min(high, other_high)
            bounds[term.column] = ((low, high),) if low <= high else ()
    return bounds


def _quotients(limit: float, c: int) -> tuple[float, float]:
    """Bounds of the ints x with ``c * x ≤ limit``."""
    if limit in (math.inf, -math.inf):
        return -math.inf, math.inf
    return (-math.inf, limit // c) if c > 0 else (-(limit // -c), math.inf)


def _real_bounds(comparison: Comparison, formulas: Formulas) -> Bounds:
    """Of ``left ≤ right``, ``left < right`` or ``left = right``, with room for rounding."""
    difference = linear_difference(comparison.left, comparison.right)
    if difference is None:
        return {}
    coefficients, constant = difference
    bounds: Bounds = {}
    for column, c in coefficients.items():
        least = greatest = constant
        size = abs(constant)
        for other, factor in coefficients.items():
            if other != column:
                domain = formulas.domains[other]
                ends = (factor * float(domain[0][0]), factor * float(domain[-1][1]))
                least, greatest = least + min(ends), greatest + max(ends)
                size += sum(abs(end) for end in ends if math.isfinite(end))
        high = (-least + size * _SLACK) / abs(c)
        low = (-greatest - size * _SLACK) / abs(c) if comparison.symbol == "=" else -math.inf
        low, high = (low, high) if c > 0 else (-high, -low)
        bounds[column] = _rounded_inside(low, high, formulas.real[column])
    return bounds


def _rounded_inside(low: float, high: float, real: bool) -> Intervals:
    if not real:
        low = math.ceil(low) if math.isfinite(low) else low
        high = math.floor(high) if math.isfinite(high) else high
    return ((low, high),) if low <= high else ()
