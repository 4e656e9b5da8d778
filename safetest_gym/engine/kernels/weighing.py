"""Number the states that are asked about, and weigh actions by what is known of outcomes.

Codes, counters and arrays are those of `kernels.search`.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.actions import APP, next_position
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.search import (
    DONE,
    ERROR,
    JUNK,
    KNOWN,
    NO_ROOM,
    NO_STATES,
    SUSPECT,
    judge,
    open_action,
    open_actions,
)

__all__ = ["AT", "LISTED", "OUTCOMES", "number_kernel", "weigh_kernel"]

AT, LISTED, OUTCOMES = range(3)
"""Progress of `weigh_kernel`: the row it is at; open outcomes listed; outcomes looked at."""


@njit(cache=True, nogil=True, _nrt=False)
def number_kernel(
    block: Any, states: Any, table: Any, verdict: Any, counters: Any, rows: Any, found: Any
) -> int:
    """found[r]: number of the state in row r; new ones are judged. There must be room."""
    before = counters[KNOWN]
    known = intern_rows_kernel(states, table, before, rows, rows.shape[0], found)
    if known > before:
        bad = judge(block[c.CLASSIFY], states, verdict, before, known)
        if bad >= 0:
            counters[SUSPECT] = bad
            counters[JUNK] = known
            return ERROR
        counters[KNOWN] = known
    return DONE


@njit(forceinline=True, _nrt=False)
def _weigh(
    block: Any,
    policy: Any,
    arrays: Any,
    verdict: Any,
    counters: Any,
    s: int,
    weights: Any,
    listed: Any,
    progress: Any,
) -> int:
    """Weigh the actions of ``s`` and list open outcomes: how many now, or minus a code."""
    states, table, succ, wide, found, scratch, span = arrays
    count = open_actions(block, APP, policy, states, scratch, counters, s)
    if count < 0:
        return count
    length, outcomes = progress[LISTED], 0
    position = -1
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
        rows = open_action(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
        )
        if rows < 0:
            return rows
        if span[0] == span[1]:
            continue
        worst = 1 if rows > 0 else 2  # no deviation is left for it
        for r in range(rows):
            known = verdict[found[r]]
            if known == 2 or (known == 0 and worst == 1):
                worst = known
        weights[scratch[1, scratch[2, position]]] = worst
        outcomes += rows
        if worst == 0:
            if length + rows > listed.shape[0]:
                return -NO_ROOM
            for r in range(rows):
                if verdict[found[r]] == 0:
                    listed[length] = found[r]
                    length += 1
    progress[OUTCOMES] += outcomes
    return length


@njit(cache=True, nogil=True, _nrt=False)
def weigh_kernel(
    block: Any,
    policy: Any,
    arrays: Any,
    verdict: Any,
    counters: Any,
    rows: Any,
    weights: Any,
    listed: Any,
    progress: Any,
) -> int:
    """weights[r, a]: verdict of the worst outcome of action a in the state of row r.

    Entries of actions that are not applicable stay as they are. ``listed`` gets the open
    outcomes that decide; ``progress`` begins with zeros.
    """
    states, table = arrays[0], arrays[1]
    found = arrays[4]
    while progress[AT] < rows.shape[0]:
        at = progress[AT]
        if counters[KNOWN] + 1 > min(states.shape[0], (table.shape[0] * 5) // 8):
            return NO_STATES
        result = number_kernel(block, states, table, verdict, counters, rows[at : at + 1], found)
        if result != DONE:
            return result
        length = _weigh(
            block, policy, arrays, verdict, counters, found[0], weights[at], listed, progress
        )
        if length < 0:
            return -length
        progress[LISTED] = length
        progress[AT] = at + 1
    return DONE
