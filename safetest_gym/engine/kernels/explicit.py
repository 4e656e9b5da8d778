"""Expand states into arrays: all actions, all outcomes, each computed once.

Choices of a state are consecutive, and so are outcomes of a choice:

- ``first[s]``: its first choice, -1 before it was expanded; ``actions[s]``: how many.
- ``choices[c]``: first outcome, deviations it costs, and two places for the algorithm. The
  entry behind the last choice holds the end of the outcomes.
- ``outcomes[e]``: a state, and two places for the algorithm.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.deviations import COST, FIRST, open_plain
from safetest_gym.engine.kernels.search import EXPANDED, NO_ROOM, open_actions

__all__ = [
    "CHOICES",
    "LISTED",
    "NO_CHOICES",
    "NO_LISTED",
    "NO_OUTCOMES",
    "OUTCOMES",
    "OWN_COUNTERS",
    "OWN_ROOM",
    "expand",
]

CHOICES, OUTCOMES, LISTED = range(FIRST, FIRST + 3)
"""Counters: lengths of choices and outcomes, and of the list of states expanded."""

OWN_COUNTERS = FIRST + 3
"""First counter that an algorithm has for itself."""

NO_CHOICES, NO_OUTCOMES, NO_LISTED = range(NO_ROOM, NO_ROOM + 3)

OWN_ROOM = NO_ROOM + 3
"""First code that an algorithm has for itself."""


@njit(forceinline=True)
def expand(
    block: Any,
    way: int,
    policy: Any,
    states: Any,
    table: Any,
    succ: Any,
    wide: Any,
    found: Any,
    scratch: Any,
    span: Any,
    verdict: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    listed: Any,
    counters: Any,
    s: int,
) -> int:
    """Expand ``s`` and list it; 0, or why that is not possible now (nothing is changed)."""
    if counters[LISTED] == listed.shape[0]:
        return NO_LISTED
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    choice, outcome = counters[CHOICES], counters[OUTCOMES]
    for position in range(count):
        rows = open_plain(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
        )
        if rows < 0:
            return -rows
        if rows == 0:
            continue
        if choice + 1 == choices.shape[0]:
            return NO_CHOICES
        if outcome + rows > outcomes.shape[0]:
            return NO_OUTCOMES
        choices[choice, 0] = outcome
        choices[choice, 1] = counters[COST]
        choice += 1
        for r in range(rows):
            outcomes[outcome + r, 0] = found[r]
        outcome += rows
    choices[choice, 0] = outcome
    first[s] = counters[CHOICES]
    actions[s] = choice - counters[CHOICES]
    counters[CHOICES], counters[OUTCOMES] = choice, outcome
    listed[counters[LISTED]] = s
    counters[LISTED] += 1
    counters[EXPANDED] += 1
    return 0
