"""On-the-fly backward propagation: is a state safe? One search for many queries.

Every state follows its first action that is not refuted; whoever depends on a state is
noted with it, and a refutation travels backwards at once. Each (state, action) is refuted
at most once, so all queries together are linear in the transitions they look at.

Arrays per state (row = number of the state):
- ``verdict``: 0 open, 1 safe, 2 unsafe.
- ``current``: position of the action followed, in the state's order of actions, plus `LAST`
  where no other one can follow; -1 before the first; ``-2 - p`` while the action at position
  p is refuted and the next one is due; `DOOMED` if there is no next one.
- ``head``: first entry of the list of dependants, -1 for none.
- ``stamp``: number of the last query that visited the state; of a refuted state, when it
  was refuted (its rank).
- ``pending``: a stack of states that must try their next action, each at most once.

What an unfinished query leaves behind is no harm to the next one: a state whose refuted
action is still due is advanced when it is visited.

Entries of dependants: state, position of its action, next entry. Freed ones form a list.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.actions import is_last, next_position
from safetest_gym.engine.kernels.search import (
    DONE,
    EXPANDED,
    NO_ROOM,
    OWN,
    TIME,
    is_dead_end,
    open_action,
    open_actions,
)

__all__ = [
    "ACTIVE",
    "AT",
    "ENDED",
    "ENTRIES",
    "FREE",
    "LAST",
    "NO_ENTRIES",
    "NO_STACK",
    "NO_VISITED",
    "NUM_COUNTERS",
    "PENDING",
    "QUERY",
    "RANK",
    "STACK",
    "VISITED",
    "otf_kernel",
]

STACK, PENDING, VISITED, ENTRIES, FREE, QUERY, RANK, AT, ACTIVE, ENDED = range(OWN, OWN + 10)
"""Counters: lengths of the lists, first free entry, number of the query, last rank given;
place among the roots, is a query going on for it? queries ended so far."""

NUM_COUNTERS = OWN + 10

NO_STACK, NO_ENTRIES, NO_VISITED = range(NO_ROOM, NO_ROOM + 3)

LAST = 1 << 30
DOOMED = -(1 << 31)


@njit(forceinline=True, _nrt=False)
def _depend(
    counters: Any,
    entries: Any,
    verdict: Any,
    head: Any,
    found: Any,
    rows: int,
    s: int,
    position: int,
) -> None:
    """Note ``s`` as a dependant of all open outcomes of the action it follows."""
    for r in range(rows):
        o = found[r]
        if verdict[o] != 0:
            continue
        entry = counters[FREE]
        if entry >= 0:
            counters[FREE] = entries[entry, 2]
        else:
            entry = counters[ENTRIES]
            counters[ENTRIES] += 1
        entries[entry, 0] = s
        entries[entry, 1] = position
        entries[entry, 2] = head[o]
        head[o] = entry


@njit(forceinline=True, _nrt=False)
def _push(
    counters: Any, stack: Any, verdict: Any, found: Any, rows: int, s: int, position: int
) -> None:
    """Open outcomes are to be visited, the first on top."""
    top = counters[STACK]
    for r in range(rows):
        o = found[rows - 1 - r]
        if verdict[o] == 0:
            stack[top, 0] = o
            stack[top, 1] = s
            stack[top, 2] = position
            top += 1
    counters[STACK] = top


@njit(forceinline=True, _nrt=False)
def _release(counters: Any, entries: Any, head: Any, s: int) -> None:
    """Nobody depends on ``s`` any more."""
    entry = head[s]
    while entry >= 0:
        following = entries[entry, 2]
        entries[entry, 2] = counters[FREE]
        counters[FREE] = entry
        entry = following
    head[s] = -1


@njit(forceinline=True, _nrt=False)
def _refute(counters: Any, per_state: Any, entries: Any, s: int) -> None:
    """``s`` is unsafe: everyone who follows an action into it must move on."""
    verdict, current, head, stamp, pending = per_state
    verdict[s] = 2
    counters[RANK] += 1
    stamp[s] = counters[RANK]
    entry = head[s]
    while entry >= 0:
        q = entries[entry, 0]
        if verdict[q] == 0 and current[q] == entries[entry, 1]:
            current[q] = DOOMED if current[q] >= LAST else -2 - current[q]
            pending[counters[PENDING]] = q
            counters[PENDING] += 1
        entry = entries[entry, 2]
    _release(counters, entries, head, s)


@njit(forceinline=True, _nrt=False)
def _advance(
    block: Any, way: int, policy: Any, arrays: Any, per_state: Any, lists: Any, counters: Any
) -> int:
    """Let the last pending state try its next action; 0, or why it cannot."""
    states, table, succ, wide, found, scratch, span = arrays
    verdict, current, head, stamp, pending = per_state
    stack, entries, _ = lists
    t = pending[counters[PENDING] - 1]
    if current[t] == DOOMED:
        counters[PENDING] -= 1
        _refute(counters, per_state, entries, t)
        return 0
    count = open_actions(block, way, policy, states, scratch, counters, t)
    if count < 0:
        return -count
    applicable = False
    position = -2 - current[t]
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
        rows = open_action(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, t, position
        )
        if rows < 0:
            return -rows
        if rows > 0:
            if counters[STACK] + rows > stack.shape[0]:
                return NO_STACK
            if counters[ENTRIES] + rows > entries.shape[0]:
                return NO_ENTRIES
            applicable = True
            bad = False
            for r in range(rows):
                bad = bad or verdict[found[r]] == 2
            if not bad:
                if is_last(block, position, count, scratch):
                    position += LAST
                current[t] = position
                counters[PENDING] -= 1
                _depend(counters, entries, verdict, head, found, rows, t, position)
                if stamp[t] == counters[QUERY]:
                    _push(counters, stack, verdict, found, rows, t, position)
                return 0
        current[t] = -2 - position
    counters[PENDING] -= 1
    if not applicable and is_dead_end(block, states, t, count):
        verdict[t] = 1
        _release(counters, entries, head, t)
    else:
        _refute(counters, per_state, entries, t)
    return 0


@njit(forceinline=True, _nrt=False)
def _visit(
    block: Any, way: int, policy: Any, arrays: Any, per_state: Any, lists: Any, counters: Any
) -> int:
    """Look at the state on top of the stack; 0, or why that is not possible now."""
    states, table, succ, wide, found, scratch, span = arrays
    verdict, current, _, stamp, pending = per_state
    stack, _, visited = lists
    top = counters[STACK] - 1
    s, parent, position = stack[top, 0], stack[top, 1], stack[top, 2]
    if (
        verdict[s] != 0
        or stamp[s] == counters[QUERY]
        or (parent >= 0 and (verdict[parent] != 0 or current[parent] != position))
    ):
        counters[STACK] = top
        return 0
    if counters[VISITED] == visited.shape[0]:
        return NO_VISITED
    if current[s] >= 0:  # open since an earlier query: its outcomes come next
        count = open_actions(block, way, policy, states, scratch, counters, s)
        if count < 0:
            return -count
        at = current[s] & (LAST - 1)
        rows = open_action(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, at
        )
        if rows < 0:
            return -rows
        if top + rows > stack.shape[0]:
            return NO_STACK
        counters[STACK] = top
        _push(counters, stack, verdict, found, rows, s, current[s])
    else:
        counters[STACK] = top
        pending[counters[PENDING]] = s
        counters[PENDING] += 1
    stamp[s] = counters[QUERY]
    visited[counters[VISITED]] = s
    counters[VISITED] += 1
    counters[EXPANDED] += 1
    return 0


@njit(forceinline=True, _nrt=False)
def _settle_visited(verdict: Any, head: Any, entries: Any, visited: Any, counters: Any) -> None:
    """What was visited and not refuted is closed under its actions: it is safe."""
    for i in range(counters[VISITED]):
        s = visited[i]
        if verdict[s] != 2:
            verdict[s] = 1
            _release(counters, entries, head, s)


@njit(forceinline=True, _nrt=False)
def _begin(verdict: Any, stack: Any, counters: Any, roots: Any) -> None:
    """Begin the query for the next root that is not settled, if there is one."""
    at = counters[AT]
    while at < roots.shape[0] and verdict[roots[at]] != 0:
        at += 1
    counters[AT] = at
    if at == roots.shape[0]:
        return
    counters[QUERY] += 1
    counters[PENDING] = 0
    counters[VISITED] = 0
    counters[STACK] = 1
    stack[0, 0], stack[0, 1], stack[0, 2] = roots[at], -1, 0
    counters[ACTIVE] = 1


@njit(cache=True, nogil=True, _nrt=False)
def otf_kernel(
    block: Any,
    way: int,
    policy: Any,
    arrays: Any,
    per_state: Any,
    lists: Any,
    counters: Any,
    roots: Any,
    most: int,
    slice_size: int,
) -> int:
    """Go on with the queries for ``roots`` for some steps.

    Args:
        per_state: verdict, current, head, stamp, pending.
        lists: stack (state, parent, position of the parent's action), entries, visited.
        most: queries that may have ended; what they have visited is still listed then.

    Returns:
        `DONE` if all are settled or enough have ended, or why not.
    """
    verdict, _, head, _, _ = per_state
    stack, entries, visited = lists
    for _ in range(slice_size):
        if counters[ACTIVE] == 0:
            if counters[ENDED] >= most:
                return DONE
            _begin(verdict, stack, counters, roots)
            if counters[ACTIVE] == 0:
                return DONE
        if counters[PENDING] > 0:
            result = _advance(block, way, policy, arrays, per_state, lists, counters)
        elif verdict[roots[counters[AT]]] != 0 or counters[STACK] == 0:
            if verdict[roots[counters[AT]]] == 0:
                _settle_visited(verdict, head, entries, visited, counters)
            counters[ACTIVE] = 0
            counters[ENDED] += 1
            continue
        else:
            result = _visit(block, way, policy, arrays, per_state, lists, counters)
        if result != 0:
            return result
    return TIME
