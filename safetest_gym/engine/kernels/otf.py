"""On-the-fly backward propagation: is a state safe? One search for many queries.

Every state follows its first action that is not refuted; whoever depends on a state is
noted with it, and a refutation travels backwards at once. Each (state, action) is refuted
at most once, so all queries together are linear in the transitions they look at.

Arrays per state (row = number of the state):
- ``verdict``: 0 open, 1 safe, 2 unsafe.
- ``current``: position of the action followed, in the state's order of actions; -1 before
  the first; ``-2 - p`` while the action at position p is refuted and the next one is due.
- ``head``: first entry of the list of dependants, -1 for none.
- ``stamp``: number of the last query that visited the state; of a refuted state, when it
  was refuted (its rank).

Entries of dependants: state, position of its action, next entry. Freed ones form a list.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.actions import open_state, rows_of
from safetest_gym.engine.kernels.choose import uint8_at
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "DONE",
    "ENTRIES",
    "ERROR",
    "EXPANDED",
    "FREE",
    "KNOWN",
    "NO_ENTRIES",
    "NO_ROWS",
    "NO_STACK",
    "NO_STATES",
    "PENDING",
    "QUERY",
    "RANK",
    "STACK",
    "TIME",
    "TRIED",
    "VISITED",
    "otf_kernel",
]

KNOWN, STACK, PENDING, VISITED, ENTRIES, FREE, QUERY, RANK, EXPANDED, TRIED = range(10)
"""Places in the counters."""

DONE, TIME, NO_STATES, NO_ROWS, NO_STACK, NO_ENTRIES, ERROR = range(7)
"""Why the kernel returned: settled; the slice is over; something must grow; no value."""


@njit(inline="always")
def _settle_new(
    block: Any, states: Any, verdict: Any, current: Any, head: Any, first: int, last: int
) -> int:
    """Judge states that were just numbered; -1 if one has no value."""
    for s in range(first, last):
        kind = call(block[c.CLASSIFY], (place(states, s * states.shape[1]),))
        if kind < 0:
            return -1
        verdict[s] = 2 if kind & 1 else (1 if kind & 2 else 0)
        current[s] = -1
        head[s] = -1
    return 0


@njit(inline="always")
def _follow(
    counters: Any,
    stack: Any,
    entries: Any,
    head: Any,
    found: Any,
    count: int,
    s: int,
    position: int,
    push: bool,
) -> None:
    """Note ``s`` as a dependant of all its outcomes, and push them if they are wanted."""
    for r in range(count):
        o = found[r]
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
    if push:
        for r in range(count - 1, -1, -1):
            top = counters[STACK]
            stack[top, 0] = found[r]
            stack[top, 1] = s
            stack[top, 2] = position
            counters[STACK] = top + 1


@njit(inline="always")
def _refute(
    counters: Any,
    pending: Any,
    entries: Any,
    verdict: Any,
    current: Any,
    head: Any,
    stamp: Any,
    s: int,
) -> None:
    """``s`` is unsafe: everyone who follows an action into it must move on."""
    verdict[s] = 2
    counters[RANK] += 1
    stamp[s] = counters[RANK]
    entry = head[s]
    while entry >= 0:
        q = entries[entry, 0]
        if verdict[q] == 0 and current[q] == entries[entry, 1]:
            current[q] = -2 - current[q]
            pending[counters[PENDING]] = q
            counters[PENDING] += 1
        following = entries[entry, 2]
        entries[entry, 2] = counters[FREE]
        counters[FREE] = entry
        entry = following
    head[s] = -1


@njit(inline="always")
def _rows(block: Any, states: Any, succ: Any, wide: Any, span: Any, left: int) -> Any:
    """The rows of an action as the deciders number them: with the deviations left, if any."""
    count = span[1] - span[0]
    words = succ.shape[1]
    for r in range(count):
        for w in range(words):
            wide[r, w] = succ[span[0] + r, w]
        if states.shape[1] > words:
            wide[r, words] = left
    return count


@njit(inline="always")
def _left(states: Any, s: int, words: int, own: int, number: int) -> int:
    """Deviations left after action ``number``; below zero if it may not be taken."""
    if states.shape[1] == words:
        return 0
    return states[s, words] - (0 if number == own else 1)


@njit(cache=True, nogil=True)
def _advance(
    block: Any,
    way: int,
    policy: Any,
    arrays: Any,
    per_state: Any,
    lists: Any,
    counters: Any,
) -> int:
    """Let the last pending state try its next action; 0, or why it cannot."""
    states, table, succ, wide, found, scratch, span = arrays
    verdict, current, head, stamp = per_state
    stack, pending, entries = lists
    t = pending[counters[PENDING] - 1]
    block[c.STATE] = place(states, t * states.shape[1])
    count = open_state(block, way, policy, scratch)
    if count < 0:
        return NO_ROWS if count == -2 else ERROR
    words = succ.shape[1]
    room = min(states.shape[0], (table.shape[0] * 5) // 8)
    for position in range(-1 - current[t], count):
        number = rows_of(block, position, scratch, span)
        if number < 0:
            return NO_ROWS if number == -2 else ERROR
        left = _left(states, t, words, scratch[3, 0], number)
        rows = span[1] - span[0]
        if rows > 0 and left >= 0:
            if counters[KNOWN] + rows > room:
                return NO_STATES
            if counters[STACK] + rows > stack.shape[0]:
                return NO_STACK
            if counters[ENTRIES] + rows > entries.shape[0]:
                return NO_ENTRIES
            _rows(block, states, succ, wide, span, left)
            before = counters[KNOWN]
            counters[KNOWN] = intern_rows_kernel(states, table, before, wide, rows, found)
            if _settle_new(block, states, verdict, current, head, before, counters[KNOWN]) < 0:
                return ERROR
            counters[TRIED] += 1
            bad = False
            for r in range(rows):
                bad = bad or verdict[found[r]] == 2
            if not bad:
                current[t] = position
                counters[PENDING] -= 1
                wanted = stamp[t] == counters[QUERY]
                _follow(counters, stack, entries, head, found, rows, t, position, wanted)
                return 0
        current[t] = -2 - position
    counters[PENDING] -= 1
    block[c.STATE] = place(states, t * states.shape[1])
    if _any_applicable(block, count):
        _refute(counters, pending, entries, verdict, current, head, stamp, t)
    else:
        verdict[t] = 1
    return 0


@njit(inline="always")
def _any_applicable(block: Any, count: int) -> bool:
    if block[c.GRANULARITY] != 1:
        return count > 0
    call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK]))
    mask = uint8_at(block[c.MASK])
    for a in range(block[c.ACTIONS]):
        if mask[a]:
            return True
    return False


@njit(cache=True, nogil=True)
def _visit(
    block: Any,
    way: int,
    policy: Any,
    arrays: Any,
    per_state: Any,
    lists: Any,
    counters: Any,
    visited: Any,
) -> int:
    """Look at the state on top of the stack; 0, or why that is not possible now."""
    states, table, succ, wide, found, scratch, span = arrays
    verdict, current, _, stamp = per_state
    stack, pending, _ = lists
    top = counters[STACK] - 1
    s, parent, position = stack[top, 0], stack[top, 1], stack[top, 2]
    skip = verdict[s] != 0 or stamp[s] == counters[QUERY]
    if parent >= 0:
        skip = skip or verdict[parent] != 0 or current[parent] != position
    if not skip and current[s] >= 0:  # open since an earlier query: its outcomes come next
        block[c.STATE] = place(states, s * states.shape[1])
        count = open_state(block, way, policy, scratch)
        if count < 0:
            return NO_ROWS if count == -2 else ERROR
        number = rows_of(block, current[s], scratch, span)
        rows = span[1] - span[0]
        if top + rows > stack.shape[0]:
            return NO_STACK
        left = _left(states, s, succ.shape[1], scratch[3, 0], number)
        _rows(block, states, succ, wide, span, left)
        intern_rows_kernel(states, table, counters[KNOWN], wide, rows, found)
        for r in range(rows):
            stack[top + r, 0] = found[r]
            stack[top + r, 1] = s
            stack[top + r, 2] = current[s]
        counters[STACK] = top + rows
    else:
        counters[STACK] = top
        if not skip:
            pending[counters[PENDING]] = s
            counters[PENDING] += 1
    if not skip:
        stamp[s] = counters[QUERY]
        visited[counters[VISITED]] = s
        counters[VISITED] += 1
        counters[EXPANDED] += 1
    return 0


@njit(cache=True, nogil=True)
def _settle_visited(verdict: Any, head: Any, visited: Any, entries: Any, counters: Any) -> None:
    """What was visited and not refuted is closed under its actions: it is safe."""
    for i in range(counters[VISITED]):
        s = visited[i]
        if verdict[s] == 0:
            verdict[s] = 1
        entry = head[s]
        while entry >= 0 and verdict[s] == 1:
            following = entries[entry, 2]
            entries[entry, 2] = counters[FREE]
            counters[FREE] = entry
            entry = following
            head[s] = -1
    counters[VISITED] = 0


@njit(cache=True, nogil=True)
def otf_kernel(
    block: Any,
    way: int,
    policy: Any,
    arrays: Any,
    per_state: Any,
    lists: Any,
    counters: Any,
    visited: Any,
    root: int,
    slice_size: int,
) -> int:
    """Go on with the query for ``root`` (pushed before) for some steps.

    Args:
        arrays: states, table, succ, wide, found, scratch, span.
        per_state: verdict, current, head, stamp.
        lists: stack, pending, entries.
    """
    verdict, _, head, _ = per_state
    _, _, entries = lists
    for _ in range(slice_size):
        if counters[PENDING] > 0:
            result = _advance(block, way, policy, arrays, per_state, lists, counters)
        elif verdict[root] != 0:
            return DONE
        elif counters[STACK] == 0:
            _settle_visited(verdict, head, visited, entries, counters)
            return DONE
        else:
            result = _visit(block, way, policy, arrays, per_state, lists, counters, visited)
        if result != 0:
            return result
    return TIME
