"""Expand states into arrays: all actions, all outcomes, each computed once.

Choices of a state are consecutive, and so are outcomes of a choice:

- ``first[s]``: its first choice, -1 before it was expanded, -2 while it is waiting to be;
  ``actions[s]``: how many choices.
- ``choices[c]``: first outcome, deviations it costs, and two places for the algorithm. The
  entry behind the last choice holds the end of the outcomes.
- ``outcomes[e]``: a state, and two places for the algorithm.
- ``listed``: the states expanded; it is as long as there is room for states.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.actions import next_position
from safetest_gym.engine.kernels.deviations import COST, FIRST, open_plain
from safetest_gym.engine.kernels.search import EXPANDED, NO_ROOM, open_actions

__all__ = [
    "CHOICES",
    "LISTED",
    "NO_CHOICES",
    "NO_OUTCOMES",
    "OUTCOMES",
    "OWN_COUNTERS",
    "QUEUE",
    "expand",
    "explore",
]

CHOICES, OUTCOMES, LISTED, QUEUE = range(FIRST, FIRST + 4)
"""Counters: lengths of choices and outcomes, of the list of states expanded, and of the
queue of states waiting."""

OWN_COUNTERS = FIRST + 4
"""First counter that an algorithm has for itself."""

NO_CHOICES, NO_OUTCOMES = NO_ROOM, NO_ROOM + 1


@njit(forceinline=True, _nrt=False)
def expand(
    model: Any,
    arrays: Any,
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
    block, way, policy = model
    states, table, succ, wide, found, scratch, span = arrays
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    choice, outcome = counters[CHOICES], counters[OUTCOMES]
    position = -1
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
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


@njit(forceinline=True, _nrt=False)
def explore(
    model: Any,
    arrays: Any,
    verdict: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    listed: Any,
    queue: Any,
    counters: Any,
) -> int:
    """Expand the state waiting last in ``queue``; outcomes not settled wait, each once."""
    s = queue[counters[QUEUE] - 1]
    if verdict[s] != 0 or first[s] >= 0:
        counters[QUEUE] -= 1
        return 0
    before = counters[OUTCOMES]
    result = expand(model, arrays, verdict, first, actions, choices, outcomes, listed, counters, s)
    if result != 0:
        return result
    counters[QUEUE] -= 1
    for e in range(before, counters[OUTCOMES]):
        o = outcomes[e, 0]
        if verdict[o] == 0 and first[o] == -1:
            first[o] = -2
            queue[counters[QUEUE]] = o
            counters[QUEUE] += 1
    return 0
