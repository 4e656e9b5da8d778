"""The graph of states that a policy can go through, numbered and expanded once each.

One tuple of arrays is the graph (see `safetest_gym.fuzzing.graph`, which owns and grows them):

- ``block``: context of the model's code, see `kernels.context`; `EVALUATE` the distance.
- ``policy``: addresses of choose and data; zeros if only Python can ask the policy.
- ``states``, ``table``: packed states by number, and their hash table.
- ``counters``: the places below.
- ``kind``: bit 0 failing, bit 1 goal; ``action``: `UNASKED`, or the policy's action, or
  `NONE` where there is none; ``distance``: NaN until measured.
- ``first``, ``degree``: successors of a state in ``edges``; ``first`` -1 before expansion.
- ``mark``: 1 + the state that a state was last listed under; ``found``, ``succ``: scratch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import call_choose, float64_at, int64_at, uint8_at
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "BAD",
    "CALLS",
    "EDGES",
    "ERROR",
    "KNOWN",
    "MEASURED",
    "NEED_ACTIONS",
    "NEED_DISTANCES",
    "NONE",
    "NO_ACTION",
    "NO_EDGES",
    "NO_ROWS",
    "NO_STATES",
    "UNASKED",
    "expand_all_kernel",
    "expand_state",
    "intern_kernel",
]

KNOWN, EDGES, MEASURED, BAD, CALLS = range(5)
"""Counters: states, entries of ``edges``, states with a distance, the state an error is
about, policy calls made."""

NEED_ACTIONS, NEED_DISTANCES, NO_STATES, NO_EDGES, NO_ROWS, ERROR, NO_ACTION = range(-7, 0)
"""Why something could not be done now: Python must ask the policy or measure, an array
must grow, the model has no value, the policy has no applicable action."""

UNASKED, NONE = -2, -1


@njit(inline="always")
def _room(states: Any, table: Any) -> int:
    return min(states.shape[0], (table.shape[0] * 5) // 8)


@njit(cache=True, nogil=True)
def _settle_new(graph: Any, first: int, last: int) -> int:
    """Fill in what is known about states that were just numbered; -1 without a value."""
    block, _, states, _, counters, kind, action, distance, begin, degree, _, mark, _, _ = graph
    width = states.shape[1]
    for s in range(first, last):
        result = call(block[c.CLASSIFY], (place(states, s * width),))
        if result < 0:
            counters[BAD] = s
            return -1
        kind[s] = result
        action[s] = UNASKED
        begin[s] = -1
        degree[s] = 0
        mark[s] = 0
        distance[s] = np.nan
        if block[c.EVALUATE]:
            if call(block[c.EVALUATE], (place(states, s * width), place(distance, s))) < 0:
                counters[BAD] = s
                return -1
            counters[MEASURED] = s + 1
    return 0


@njit(inline="always")
def _rows_of_all(block: Any) -> int:
    count = call(
        block[c.EXPAND],
        (
            block[c.STATE],
            block[c.SUCC],
            block[c.PROB],
            block[c.NUMBER],
            block[c.ENDS],
            block[c.CAPACITY],
        ),
    )
    return count if count >= 0 else (NO_ROWS if count == -2 else ERROR)


@njit(cache=True, nogil=True)
def _fill_mask(block: Any) -> int:
    """The mask of applicable actions; how many rows were expanded for it, 0 for labels."""
    mask = uint8_at(block[c.MASK])
    if block[c.GRANULARITY] == 1:
        return ERROR if call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK])) < 0 else 0
    count = _rows_of_all(block)
    if block[c.GRANULARITY] == 2:
        mask[0] = count > 0
        return count
    for a in range(block[c.ACTIONS]):
        mask[a] = 0
    number = int64_at(block[c.NUMBER])
    for r in range(count):
        mask[number[r]] = 1
    return count


@njit(cache=True, nogil=True)
def _ask(graph: Any, s: int) -> int:
    """action[s] by the compiled policy; 0 or a negative code. The state is in the block."""
    block, policy, _, _, counters, _, action, _, _, _, _, _, _, _ = graph
    result = _fill_mask(block)
    if result < 0:
        return result
    mask = uint8_at(block[c.MASK])
    possible = False
    for a in range(block[c.ACTIONS]):
        possible = possible or mask[a] != 0
    if not possible:
        action[s] = NONE
        return 0
    if policy[0] == 0:
        return NEED_ACTIONS
    call(block[c.UNPACK], (block[c.STATE], block[c.VALUES]))
    if not block[c.FLOATING]:
        whole, doubles = int64_at(block[c.VALUES]), float64_at(block[c.OBSERVATION])
        for v in range(block[c.VARIABLES]):
            doubles[v] = float(whole[v])
        chosen = call_choose(policy[0], policy[1], block[c.OBSERVATION], block[c.MASK])
    else:
        chosen = call_choose(policy[0], policy[1], block[c.VALUES], block[c.MASK])
    counters[CALLS] += 1
    if chosen < 0:
        return NO_ACTION
    action[s] = chosen
    return 0


@njit(cache=True, nogil=True)
def _rows(block: Any, chosen: int) -> Any:
    """First and last row of an action; the last is negative for an error."""
    if block[c.GRANULARITY] == 1:
        count = call(
            block[c.OUTCOMES],
            (
                block[c.STATE],
                chosen,
                block[c.SUCC],
                block[c.PROB],
                block[c.NUMBER],
                block[c.CAPACITY],
            ),
        )
        return 0, count if count >= 0 else (NO_ROWS if count == -2 else ERROR)
    last = _rows_of_all(block)
    if last < 0 or block[c.GRANULARITY] == 2:
        return 0, last
    number = int64_at(block[c.NUMBER])
    first = 0
    while first < last and number[first] != chosen:
        first += 1
    end = first
    while end < last and number[end] == chosen:
        end += 1
    return first, end


@njit(cache=True, nogil=True)
def expand_state(graph: Any, s: int) -> int:
    """Number the different outcomes of the policy's action; how many, or a negative code."""
    block, _, states, table, counters, kind, action, _, begin, degree, edges, mark, found, succ = (
        graph
    )
    if begin[s] >= 0:
        return degree[s]
    if kind[s] != 0:  # failing or goal: the run is over
        begin[s] = 0
        return 0
    block[c.STATE] = place(states, s * states.shape[1])
    if action[s] == UNASKED:
        result = _ask(graph, s)
        if result < 0:
            counters[BAD] = s
            return result
    if action[s] == NONE:
        begin[s] = 0
        return 0
    first, last = _rows(block, action[s])
    if last < 0:
        counters[BAD] = s
        return last
    if counters[KNOWN] + last - first > _room(states, table):
        return NO_STATES
    if counters[EDGES] + last - first > edges.shape[0]:
        return NO_EDGES
    before = counters[KNOWN]
    rows = succ[first:last]
    counters[KNOWN] = intern_rows_kernel(states, table, before, rows, last - first, found)
    if _settle_new(graph, before, counters[KNOWN]) < 0:
        return ERROR
    count = 0
    for r in range(last - first):
        if mark[found[r]] != s + 1:
            mark[found[r]] = s + 1
            edges[counters[EDGES] + count] = found[r]
            count += 1
    begin[s] = counters[EDGES]
    degree[s] = count
    counters[EDGES] += count
    return count


@njit(cache=True, nogil=True)
def expand_all_kernel(graph: Any, wanted: Any, done: int) -> int:
    """Expand ``wanted[done:]``; how many are done in all, or a negative code.

    For codes that can be helped, ``counters[BAD]`` is the place in ``wanted``.
    """
    counters = graph[4]
    for i in range(done, wanted.shape[0]):
        result = expand_state(graph, wanted[i])
        if result < 0:
            if result != ERROR and result != NO_ACTION:
                counters[BAD] = i
            return result
    return wanted.shape[0]


@njit(cache=True, nogil=True)
def intern_kernel(graph: Any, rows: Any, numbers: Any, done: int) -> int:
    """numbers[i]: number of the packed state rows[i]; how many are done, or `ERROR`."""
    states, table, counters = graph[2], graph[3], graph[4]
    count = min(rows.shape[0] - done, _room(states, table) - counters[KNOWN])
    before = counters[KNOWN]
    counters[KNOWN] = intern_rows_kernel(states, table, before, rows[done:], count, numbers[done:])
    if _settle_new(graph, before, counters[KNOWN]) < 0:
        return ERROR
    return done + count
