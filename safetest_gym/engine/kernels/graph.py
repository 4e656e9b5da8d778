"""The explicit graph: explore and write down; propagate failing backwards, linearly."""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "CHOICES",
    "DONE",
    "ERROR",
    "KNOWN",
    "LIMIT",
    "MORE",
    "NEXT",
    "NO_CHOICES",
    "NO_OUTCOMES",
    "NO_ROWS",
    "NO_STATES",
    "OUTCOMES",
    "build_kernel",
    "predecessors_kernel",
    "propagate_kernel",
]

KNOWN, NEXT, CHOICES, OUTCOMES, LIMIT = range(5)
"""Counters: states known, states expanded, choices and outcomes written, states allowed."""

DONE, MORE, NO_STATES, NO_ROWS, NO_CHOICES, NO_OUTCOMES, ERROR = range(7)
"""Results: nothing left (or the limit); the slice is over; something must grow; no value."""


@njit(forceinline=True, _nrt=False)
def _write(rows: Any, graph: Any, counters: Any, granularity: int, count: int) -> int:
    """Write the rows of one state down as choices and outcomes; how many choices now."""
    _, prob, number, ends, found = rows
    _, _, actions, first_outcome, outcomes, probabilities = graph
    choices, written = counters[CHOICES], counters[OUTCOMES]
    first = label = 0
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
        edges = 1
        for r in range(first + 1, last):
            edges += number[r] != number[r - 1]
        for r in range(first, last):
            outcomes[written + r] = found[r]
            probabilities[written + r] = prob[r] / edges
        actions[choices] = number[first] if granularity == 0 else label
        choices += 1
        first_outcome[choices] = written + last
        first = last
    counters[CHOICES] = choices
    counters[OUTCOMES] = written + count
    return choices


@njit(cache=True, nogil=True, _nrt=False)
def build_kernel(
    code: Any, space: Any, rows: Any, graph: Any, counters: Any, granularity: int, slice_size: int
) -> int:
    """Expand up to ``slice_size`` states and write their choices and outcomes down.

    Args:
        code: addresses of ``expand`` and ``classify``.
        space: states, table.
        rows: succ, prob, number, ends, found.
        graph: kinds, first choice per state, action and first outcome per choice, state
            and probability per outcome; first ones have one entry more.
    """
    states, table = space
    succ, prob, number, ends, found = rows
    kinds, first_choice, actions, _, outcomes, _ = graph
    width = states.shape[1]
    room = min(states.shape[0], (table.shape[0] * 5) // 8)
    for _ in range(slice_size):
        s = counters[NEXT]
        if s == counters[KNOWN] or counters[KNOWN] > counters[LIMIT]:
            return DONE
        here = place(states, s * width)
        count = call(
            code[0],
            (
                here,
                place(succ, 0),
                place(prob, 0),
                place(number, 0),
                place(ends, 0),
                prob.shape[0],
            ),
        )
        if count == -2:
            return NO_ROWS
        kind = call(code[1], (here,))
        if count < 0 or kind < 0:
            return ERROR
        if counters[KNOWN] + count > room:
            return NO_STATES
        choices, written = counters[CHOICES], counters[OUTCOMES]
        if choices + count + 1 > actions.shape[0]:
            return NO_CHOICES
        if written + count > outcomes.shape[0]:
            return NO_OUTCOMES
        counters[KNOWN] = intern_rows_kernel(states, table, counters[KNOWN], succ, count, found)
        kinds[s] = kind
        first_choice[s + 1] = _write(rows, graph, counters, granularity, count)
        counters[NEXT] = s + 1
    return MORE


@njit(cache=True, nogil=True, _nrt=False)
def predecessors_kernel(first_outcome: Any, outcomes: Any, first_entry: Any, entries: Any) -> None:
    """Per state, the choices that may lead there: a counting sort of all outcomes.

    Args:
        first_entry: zeros, two more than states; entries of s are ``first_entry[s : s + 2]``.
    """
    for o in range(outcomes.shape[0]):
        first_entry[outcomes[o] + 2] += 1
    for s in range(first_entry.shape[0] - 1):
        first_entry[s + 1] += first_entry[s]
    for choice in range(first_outcome.shape[0] - 1):
        for o in range(first_outcome[choice], first_outcome[choice + 1]):
            target = outcomes[o] + 1
            entries[first_entry[target]] = choice
            first_entry[target] += 1


@njit(cache=True, nogil=True, _nrt=False)
def propagate_kernel(
    kinds: Any, first_choice: Any, owner: Any, first_entry: Any, entries: Any, work: Any
) -> None:
    """rank[s]: when s was found to be unsafe, from 1 on; 0 for safe states.

    Args:
        work: rank (zeros), alive (uint8 ones, per choice), left (int32, per state: choices
            not yet refuted), queue (int32, per state).
    """
    rank, alive, left, queue = work
    size = 0
    for s in range(kinds.shape[0]):
        left[s] = first_choice[s + 1] - first_choice[s]
        if kinds[s] & 1:
            rank[s] = 1
            queue[size] = s
            size += 1
    done = 0
    while done < size:
        s = queue[done]
        done += 1
        for e in range(first_entry[s], first_entry[s + 1]):
            choice = entries[e]
            if alive[choice]:
                alive[choice] = 0
                q = owner[choice]
                left[q] -= 1
                if left[q] == 0 and kinds[q] == 0:
                    rank[q] = rank[s] + 1
                    queue[size] = q
                    size += 1
