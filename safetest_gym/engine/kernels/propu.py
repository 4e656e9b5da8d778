"""Prop-U ([S] Alg. 2): explore all that can be reached, then propagate what is unsafe.

Uses the arrays of `kernels.explicit`. ``choices[c]`` also holds the state it belongs to and
whether it has an unsafe outcome; ``outcomes[e]`` the choice, and the next entry with the
same outcome (from ``head[s]`` on, -1 ends). ``remaining[s]`` counts the choices without an
unsafe outcome. States that are settled already are not explored; what is settled last is
all that was explored.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.explicit import (
    CHOICES,
    LISTED,
    OUTCOMES,
    OWN_COUNTERS,
    QUEUE,
    explore,
)
from safetest_gym.engine.kernels.search import DONE, TIME

__all__ = ["NEXT", "NUM_COUNTERS", "PHASE", "propu_kernel"]

NEXT, PHASE = OWN_COUNTERS, OWN_COUNTERS + 1
"""Counters: place in the list that a phase has come to, and the phase."""

NUM_COUNTERS = OWN_COUNTERS + 2

EXPLORE, CONNECT, PROPAGATE, SETTLE = range(4)


@njit(forceinline=True, _nrt=False)
def _connect(
    verdict: Any,
    first: Any,
    remaining: Any,
    head: Any,
    choices: Any,
    outcomes: Any,
    queue: Any,
    counters: Any,
    s: int,
) -> None:
    """Enter the choices of ``s`` with their outcomes."""
    for c in range(first[s], first[s] + remaining[s]):
        choices[c, 2] = s
        choices[c, 3] = 0
        for e in range(choices[c, 0], choices[c + 1, 0]):
            o = outcomes[e, 0]
            outcomes[e, 1] = c
            outcomes[e, 2] = head[o]
            head[o] = e
            if verdict[o] == 2:
                choices[c, 3] = 1
    if remaining[s] == 0:
        verdict[s] = 1  # a dead end
        return
    good = 0
    for c in range(first[s], first[s] + remaining[s]):
        good += 1 - choices[c, 3]
    remaining[s] = good
    if good == 0:
        verdict[s] = 2
        queue[counters[QUEUE]] = s
        counters[QUEUE] += 1


@njit(forceinline=True, _nrt=False)
def _propagate(
    verdict: Any, remaining: Any, head: Any, choices: Any, outcomes: Any, queue: Any, counters: Any
) -> None:
    """The unsafe state waiting last refutes the choices that lead to it."""
    counters[QUEUE] -= 1
    e = head[queue[counters[QUEUE]]]
    while e >= 0:
        c = outcomes[e, 1]
        s = choices[c, 2]
        if choices[c, 3] == 0:
            choices[c, 3] = 1
            remaining[s] -= 1
            if remaining[s] == 0 and verdict[s] == 0:
                verdict[s] = 2
                queue[counters[QUEUE]] = s
                counters[QUEUE] += 1
        e = outcomes[e, 2]


@njit(forceinline=True, _nrt=False)
def _settle(
    verdict: Any, first: Any, head: Any, choices: Any, outcomes: Any, s: int, actions: int
) -> None:
    """What was explored and is not unsafe is safe; its entries are given up."""
    if verdict[s] == 0:
        verdict[s] = 1
    head[s] = -1
    for e in range(choices[first[s], 0], choices[first[s] + actions, 0]):
        head[outcomes[e, 0]] = -1


@njit(cache=True, nogil=True, _nrt=False)
def propu_kernel(
    model: Any, arrays: Any, per_state: Any, lists: Any, counters: Any, slice_size: int
) -> int:
    """Go on with the query whose root was put into the queue.

    Args:
        per_state: verdict, first, actions, remaining, head.
        lists: choices, outcomes, listed, queue.
    """
    verdict, first, actions, remaining, head = per_state
    choices, outcomes, listed, queue = lists
    for _ in range(slice_size):
        phase, at = counters[PHASE], counters[NEXT]
        if phase == EXPLORE and counters[QUEUE] > 0:
            result = explore(
                model, arrays, verdict, first, actions, choices, outcomes, listed, queue, counters
            )
            if result != 0:
                return result
        elif phase == PROPAGATE and counters[QUEUE] > 0:
            _propagate(verdict, remaining, head, choices, outcomes, queue, counters)
        elif phase in (EXPLORE, PROPAGATE):
            counters[PHASE], counters[NEXT] = phase + 1, 0
        elif at < counters[LISTED]:
            s = listed[at]
            if phase == CONNECT:
                remaining[s] = actions[s]
                _connect(verdict, first, remaining, head, choices, outcomes, queue, counters, s)
            else:
                _settle(verdict, first, head, choices, outcomes, s, actions[s])
            counters[NEXT] = at + 1
        elif phase == SETTLE:
            counters[CHOICES] = counters[OUTCOMES] = counters[LISTED] = 0
            return DONE
        else:
            counters[PHASE] = PROPAGATE
    return TIME
