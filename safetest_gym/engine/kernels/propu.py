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

from safetest_gym.engine.kernels.explicit import CHOICES, LISTED, OUTCOMES, OWN_COUNTERS, expand
from safetest_gym.engine.kernels.search import DONE, TIME

__all__ = ["NEXT", "NUM_COUNTERS", "PHASE", "QUEUE", "propu_kernel"]

NEXT, PHASE, QUEUE = range(OWN_COUNTERS, OWN_COUNTERS + 3)
"""Counters: place in the list that a phase has come to, the phase, unsafe states waiting."""

NUM_COUNTERS = OWN_COUNTERS + 3

EXPLORE, CONNECT, PROPAGATE, SETTLE = range(4)


@njit(forceinline=True)
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


@njit(forceinline=True)
def _propagate(
    verdict: Any,
    remaining: Any,
    head: Any,
    choices: Any,
    outcomes: Any,
    queue: Any,
    counters: Any,
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


@njit(forceinline=True)
def _settle(
    verdict: Any, first: Any, head: Any, choices: Any, outcomes: Any, s: int, actions: int
) -> None:
    """What was explored and is not unsafe is safe; its entries are given up."""
    if verdict[s] == 0:
        verdict[s] = 1
    head[s] = -1
    for e in range(choices[first[s], 0], choices[first[s] + actions, 0]):
        head[outcomes[e, 0]] = -1


@njit(cache=True, nogil=True)
def propu_kernel(
    block: Any,
    way: int,
    policy: Any,
    arrays: Any,
    per_state: Any,
    lists: Any,
    counters: Any,
    slice_size: int,
) -> int:
    """Go on with the query whose root is the first entry of the list of states to explore.

    Args:
        per_state: verdict, first, actions, remaining, head.
        lists: choices, outcomes, listed, queue (as long as states are known).
    """
    states, table, succ, wide, found, scratch, span = arrays
    verdict, first, actions, remaining, head = per_state
    choices, outcomes, listed, queue = lists
    for _ in range(slice_size):
        at = counters[NEXT]
        if counters[PHASE] == EXPLORE:
            if counters[QUEUE] == 0:
                counters[PHASE], counters[NEXT] = CONNECT, 0
                continue
            s = queue[counters[QUEUE] - 1]
            if verdict[s] != 0 or first[s] >= 0:
                counters[QUEUE] -= 1
                continue
            before = counters[OUTCOMES]
            result = expand(
                block,
                way,
                policy,
                states,
                table,
                succ,
                wide,
                found,
                scratch,
                span,
                verdict,
                first,
                actions,
                choices,
                outcomes,
                listed,
                counters,
                s,
            )
            if result != 0:
                return result
            remaining[s] = actions[s]
            counters[QUEUE] -= 1
            for e in range(before, counters[OUTCOMES]):
                o = outcomes[e, 0]
                if verdict[o] == 0 and first[o] == -1:
                    first[o] = -2
                    queue[counters[QUEUE]] = o
                    counters[QUEUE] += 1
        elif counters[PHASE] == PROPAGATE and counters[QUEUE] > 0:
            _propagate(verdict, remaining, head, choices, outcomes, queue, counters)
        elif counters[PHASE] == PROPAGATE:
            counters[PHASE], counters[NEXT] = SETTLE, 0
        elif at == counters[LISTED]:
            if counters[PHASE] == SETTLE:
                counters[CHOICES] = counters[OUTCOMES] = counters[LISTED] = 0
                return DONE
            counters[PHASE] = PROPAGATE
        elif counters[PHASE] == CONNECT:
            s = listed[at]
            _connect(verdict, first, remaining, head, choices, outcomes, queue, counters, s)
            counters[NEXT] += 1
        else:
            s = listed[at]
            _settle(verdict, first, head, choices, outcomes, s, actions[s])
            counters[NEXT] += 1
    return TIME
