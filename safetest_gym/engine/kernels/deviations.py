"""Open actions when a state stands for itself, with any number of deviations left.

`kernels.search.open_action` leads to pairs of a state and the deviations left. Algorithms
that count deviations themselves number every state once: the last word of its row stays at
the radius, and ``counters[COST]`` says what an action costs. What is known per state:

- ``verdict``: 2 if the whole radius does not suffice; 1 if ``upper`` deviations suffice.
- ``lower``: this many deviations are needed at least, if any number suffices.

With an infinite radius nothing costs anything: ``lower`` is 1 for unsafe, ``upper`` 0.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.actions import rows_of
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.search import (
    ERROR,
    JUNK,
    KNOWN,
    LIMIT,
    NO_ROWS,
    NO_STATES,
    OVER,
    OWN,
    SUSPECT,
    TRIED,
    judge,
)

__all__ = ["COST", "FIRST", "open_plain", "standing"]

COST = OWN
"""Counter: 1 if the action opened last is a deviation."""

FIRST = OWN + 1
"""First counter that an algorithm has for itself."""


@njit(forceinline=True, _nrt=False)
def standing(verdict: Any, lower: Any, upper: Any, s: int, left: int) -> int:
    """What is proved of ``s`` with so many deviations left: 0 nothing, 1 safe, 2 unsafe."""
    if verdict[s] == 2 or lower[s] > left:
        return 2
    return 1 if verdict[s] == 1 and upper[s] <= left else 0


@njit(forceinline=True, _nrt=False)
def open_plain(
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
    """Like `kernels.search.open_action`, but every state keeps the word of ``s``."""
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
        counters[COST] = 0
        known = intern_rows_kernel(states, table, before, succ[span[0] :], rows, found)
    else:
        counters[COST] = 0 if number == scratch[3, 0] else 1
        for r in range(rows):
            for w in range(words):
                wide[r, w] = succ[span[0] + r, w]
            wide[r, words] = states[s, words]
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
