"""What the kernels of all deciders share: codes, counters, opening actions, judging states.

A search kernel works in slices. It returns one of the codes below; the face grows what is
missing, or looks at the clock, and calls again with nothing lost. Whatever can fail for
lack of room is therefore done before anything is changed.

states, table, succ, wide, found, scratch and span are `deciders.space.StateSpace.arrays`; take
the tuple apart once, at the top of a kernel. ``verdict`` has one entry per state: 0 open,
1 safe, 2 unsafe; states that fail and goal states have theirs from the moment they are
numbered.

``_nrt=False`` turns off numba's counting of references. Kernels do not need it, as their
callers own all arrays, and its atomic operations would take most of the time: on
one_way_line everything is 2.5 times as fast without.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.actions import NO_CHOICE, open_state, rows_of
from safetest_gym.engine.kernels.choose import uint8_at
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "DONE",
    "ERROR",
    "EXPANDED",
    "JUNK",
    "KNOWN",
    "LIMIT",
    "NO_ACTION",
    "NO_ROOM",
    "NO_ROWS",
    "NO_STATES",
    "OVER",
    "OWN",
    "SUSPECT",
    "TIME",
    "TRIED",
    "is_dead_end",
    "judge",
    "open_action",
    "open_actions",
]

KNOWN, LIMIT, EXPANDED, TRIED, SUSPECT, JUNK = range(6)
"""Counters: states known; how many may be; states opened; actions looked at; the state
that has no value; after an error, states numbered from `KNOWN` on that must be forgotten."""

OWN = 8
"""First counter that an algorithm has for itself."""

DONE, TIME, NO_STATES, NO_ROWS, OVER, ERROR, NO_ACTION, NO_ROOM = range(8)
"""Why a kernel returned: settled; the slice is over; more states or rows are needed; more
states are known than the budget allows; the suspect has no value, or no action by the
policy; (this number and up) a list of the algorithm's own must grow."""


@njit(forceinline=True, _nrt=False)
def open_actions(
    block: Any, way: int, policy: Any, states: Any, scratch: Any, counters: Any, s: int
) -> int:
    """Put the actions of state ``s`` in order: the number of positions, or minus a code.

    In label mode a position may turn out to be not applicable. The state stays open, for
    `open_action`, until another one is opened.
    """
    block[c.STATE] = place(states, s * states.shape[1])
    count = open_state(block, way, policy, scratch)
    if count < 0:
        counters[SUSPECT] = s
        if count == -2:
            return -NO_ROWS
        return -NO_ACTION if count == NO_CHOICE else -ERROR
    return count


@njit(cache=True, nogil=True, _nrt=False)
def judge(classify: int, states: Any, verdict: Any, first: int, last: int) -> int:
    """Judge states that were just numbered; the first without a value, or -1."""
    for s in range(first, last):
        kind = call(classify, (place(states, s * states.shape[1]),))
        if kind < 0:
            return s
        verdict[s] = 2 if kind & 1 else (1 if kind & 2 else 0)
    return -1


@njit(forceinline=True, _nrt=False)
def open_action(
    block: Any,
    states: Any,
    table: Any,
    succ: Any,
    wide: Any,
    found: Any,
    scratch: Any,
    span: Any,
    verdict: Any,
    counters: Any,
    s: int,
    position: int,
) -> int:
    """Number the outcomes of an action of ``s``, which is open, into ``found[0 : result]``.

    Returns:
        How many, equal ones repeated; 0 if the action cannot be taken (not applicable, or
        no deviation left); or minus a code.
    """
    number = rows_of(block, position, scratch, span)
    if number < 0:
        counters[SUSPECT] = s
        return -NO_ROWS if number == -2 else -ERROR
    rows = span[1] - span[0]
    if rows == 0:
        return 0
    before = counters[KNOWN]
    if before + rows > min(states.shape[0], (table.shape[0] * 5) // 8):
        return -NO_STATES
    if before > counters[LIMIT]:
        return -OVER
    words = succ.shape[1]
    if states.shape[1] == words:
        known = intern_rows_kernel(states, table, before, succ[span[0] :], rows, found)
    else:
        left = states[s, words] - (0 if number == scratch[3, 0] else 1)
        if left < 0:
            return 0
        for r in range(rows):
            for w in range(words):
                wide[r, w] = succ[span[0] + r, w]
            wide[r, words] = left
        known = intern_rows_kernel(states, table, before, wide, rows, found)
    counters[TRIED] += 1
    if known > before:
        bad = judge(block[c.CLASSIFY], states, verdict, before, known)
        if bad >= 0:
            counters[SUSPECT] = bad
            counters[JUNK] = known
            return -ERROR
        counters[KNOWN] = known
    return rows


@njit(forceinline=True, _nrt=False)
def is_dead_end(block: Any, states: Any, s: int, count: int) -> bool:
    """Has the state, opened with ``count`` positions, no applicable action?"""
    if block[c.GRANULARITY] != 1:
        return count == 0
    block[c.STATE] = place(states, s * states.shape[1])
    call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK]))
    mask = uint8_at(block[c.MASK])
    applicable = 0
    for a in range(block[c.ACTIONS]):
        applicable += mask[a]
    return applicable == 0
