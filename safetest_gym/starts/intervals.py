"""Sets of numbers as sorted, disjoint, closed intervals.

Of the ints, or of the 64-bit floats: there ``x < c`` is ``x ≤`` the float before ``c``, so
closed intervals are all it takes. Ends may be infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = [
    "EVERYTHING",
    "Intervals",
    "after",
    "before",
    "complement",
    "cut",
    "discrete",
    "holds",
    "intersect",
    "number_of_ints",
    "unite",
]

Intervals = tuple[tuple[float, float], ...]
"""Pairs (low, high) with low ≤ high and a gap between neighbours; ints where exact."""

EVERYTHING: Intervals = ((-math.inf, math.inf),)


def after(value: float, real: bool) -> float:
    """The next greater number."""
    return math.nextafter(value, math.inf) if real else value + 1


def before(value: float, real: bool) -> float:
    """The next smaller number."""
    return math.nextafter(value, -math.inf) if real else value - 1


def holds(intervals: Intervals, value: float) -> bool:
    """Is ``value`` inside?"""
    return any(low <= value <= high for low, high in intervals)


def intersect(one: Intervals, other: Intervals) -> Intervals:
    """What both hold."""
    result: list[tuple[float, float]] = []
    i = j = 0
    while i < len(one) and j < len(other):
        low, high = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if low <= high:
            result.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def unite(sets: Iterable[Intervals], real: bool) -> Intervals:
    """What any of ``sets`` holds; neighbours without a gap become one interval."""
    result: list[tuple[float, float]] = []
    for low, high in sorted(pair for intervals in sets for pair in intervals):
        if result and low <= after(result[-1][1], real):
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return tuple(result)


def complement(intervals: Intervals, real: bool) -> Intervals:
    """What ``intervals`` does not hold."""
    result: list[tuple[float, float]] = []
    low = -math.inf
    for first, last in intervals:
        if first != -math.inf and low <= before(first, real):
            result.append((low, before(first, real)))
        if last == math.inf:
            return tuple(result)
        low = after(last, real)
    result.append((low, math.inf))
    return tuple(result)


def cut(intervals: Intervals, starts: Iterable[float], real: bool) -> Intervals:
    """The same set, as pieces none of which continues across one of ``starts``."""
    result: list[tuple[float, float]] = []
    at = sorted(set(starts))
    position = 0
    for low, high in intervals:
        while position < len(at) and at[position] <= low:
            position += 1
        while position < len(at) and at[position] <= high:
            result.append((low, before(at[position], real)))
            low = at[position]
            position += 1
        result.append((low, high))
    return tuple(result)


def number_of_ints(intervals: Intervals) -> float:
    """How many ints ``intervals`` holds; infinite if it is."""
    total: float = 0
    for low, high in intervals:
        if low == -math.inf or high == math.inf:
            return math.inf
        total += high - low + 1
    return total


def discrete(intervals: Intervals) -> bool:
    """Are they single numbers?"""
    return all(low == high for low, high in intervals)
