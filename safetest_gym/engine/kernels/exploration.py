"""Breadth-first exploration in slices; the face grows the arrays between slices."""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "CHOICES",
    "DEADLOCKS",
    "DONE",
    "FAILING",
    "GOAL",
    "KNOWN",
    "MORE",
    "NEXT",
    "NO_ROWS",
    "NO_STATES",
    "TRANSITIONS",
    "explore_kernel",
]

KNOWN, NEXT, CHOICES, TRANSITIONS, DEADLOCKS, FAILING, GOAL = range(7)
"""Places in the counters."""

DONE, MORE, NO_STATES, NO_ROWS = range(4)
"""Results: nothing left; the slice is over; a larger state table or row buffer is needed."""


@njit(cache=True, nogil=True)
def _distinct(found: Any, first: int, last: int, stamps: Any, stamp: int) -> int:
    """How many different entries ``found[first:last]`` has."""
    size = last - first
    if size == 1:
        return 1
    count = 0
    if size <= 24:
        for i in range(first, last):
            new = 1
            for j in range(first, i):
                if found[j] == found[i]:
                    new = 0
                    break
            count += new
        return count
    capacity = stamps.shape[0]
    for i in range(first, last):
        at = (found[i] * 40503) & (capacity - 1)
        while stamps[at, 0] == stamp and stamps[at, 1] != found[i]:
            at = (at + 1) & (capacity - 1)
        if stamps[at, 0] != stamp:
            stamps[at, 0] = stamp
            stamps[at, 1] = found[i]
            count += 1
    return count


@njit(inline="always")
def _count_choices(
    granularity: int, counters: Any, number: Any, ends: Any, found: Any, stamps: Any, count: int
) -> None:
    """Add the choices among ``count`` rows, and the different successors of each."""
    first = 0
    label = 0
    while first < count:
        last = count
        if granularity == 0:
            last = first + 1
            while last < count and number[last] == number[first]:
                last += 1
        elif granularity == 1:
            while ends[label] <= first:
                label += 1
            last = ends[label]
        counters[CHOICES] += 1
        counters[TRANSITIONS] += _distinct(found, first, last, stamps, counters[CHOICES])
        first = last


@njit(cache=True, nogil=True)
def explore_kernel(
    expand: int,
    classify: int,
    granularity: int,
    states: Any,
    table: Any,
    counters: Any,
    succ: Any,
    prob: Any,
    number: Any,
    ends: Any,
    found: Any,
    stamps: Any,
    limit: int,
    slice_size: int,
) -> int:
    """Expand up to ``slice_size`` states.

    Granularity 0: a choice is a composed edge, 1: a label, 2: everything together.
    Returns a result above, or ``-1 - s`` for a state without a value.
    """
    width = states.shape[1]
    room = min(states.shape[0], (table.shape[0] * 5) // 8)
    stop = counters[NEXT] + slice_size
    while counters[NEXT] < counters[KNOWN]:
        s = counters[NEXT]
        if s == stop:
            return MORE
        if counters[KNOWN] > limit:
            return DONE
        count = call(
            expand,
            (
                place(states, s * width),
                place(succ, 0),
                place(prob, 0),
                place(number, 0),
                place(ends, 0),
                prob.shape[0],
            ),
        )
        if count == -2:
            return NO_ROWS
        kind = call(classify, (place(states, s * width),))
        if count < 0 or kind < 0:
            return -1 - s
        if counters[KNOWN] + count > room:
            return NO_STATES
        counters[KNOWN] = intern_rows_kernel(states, table, counters[KNOWN], succ, count, found)
        counters[FAILING] += kind & 1
        counters[GOAL] += (kind >> 1) & 1
        if count == 0:
            counters[DEADLOCKS] += 1
        _count_choices(granularity, counters, number, ends, found, stamps, count)
        counters[NEXT] = s + 1
    return DONE
