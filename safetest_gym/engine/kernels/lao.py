"""LAO* in its improved form (Hansen and Zilberstein 2001), with the r-Bellman operator.

A round walks the greedy policy's graph from the root, depth first: a state never expanded
before is expanded, not passed; every state is backed up in post order. A round that
changed nothing walked a closed graph of exact values.

Uses the arrays of `kernels.explicit`. Of the path, per depth: ``frames`` (state),
``chosen`` (its choice), ``next`` (outcome to look at). ``stamp[s]``: last round that
visited ``s``; ``visited``: its states. These lists are as long as there is room for states.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.bellman import backup, greedy, solve
from safetest_gym.engine.kernels.deviations import standing
from safetest_gym.engine.kernels.explicit import OWN_COUNTERS, expand
from safetest_gym.engine.kernels.search import DONE, TIME

__all__ = ["CHANGED", "DEPTH", "NUM_COUNTERS", "ROUND", "VISITED", "lao_kernel"]

DEPTH, VISITED, ROUND, CHANGED = range(OWN_COUNTERS, OWN_COUNTERS + 4)
"""Counters: frames; states of this round; its number; did it change anything."""

NUM_COUNTERS = OWN_COUNTERS + 4


@njit(forceinline=True, _nrt=False)
def _back_up_last(per_state: Any, graph: Any, path: Any, counters: Any, limit: int) -> bool:
    """Leave the last frame if all outcomes of its choice were looked at."""
    verdict, lower, _, first, actions, _ = per_state
    choices, outcomes, _ = graph
    frames, chosen, following, _ = path
    top = counters[DEPTH] - 1
    c = chosen[top]
    if c >= 0 and following[top] < choices[c + 1, 0]:
        return False
    counters[DEPTH] = top
    if backup(verdict, lower, first, actions, choices, outcomes, limit, frames[top]):
        counters[CHANGED] = 1
    return True


@njit(forceinline=True, _nrt=False)
def _pass(per_state: Any, graph: Any, path: Any, counters: Any, limit: int, s: int) -> None:
    """Put ``s``, expanded before, on the path with its greedy choice."""
    verdict, lower, _, first, actions, _ = per_state
    choices, outcomes, _ = graph
    frames, chosen, following, _ = path
    c = greedy(verdict, lower, first, actions, choices, outcomes, limit, s)
    depth = counters[DEPTH]
    frames[depth] = s
    chosen[depth] = c
    following[depth] = choices[c, 0] if c >= 0 else 0
    counters[DEPTH] = depth + 1


@njit(forceinline=True, _nrt=False)
def _end_round(
    counters: Any, verdict: Any, lower: Any, upper: Any, visited: Any, root: int, left: int
) -> bool:
    """Is the root settled?"""
    if counters[VISITED] > 0 and not counters[CHANGED]:
        for i in range(counters[VISITED]):
            solve(verdict, lower, upper, visited[i])
    counters[VISITED] = counters[CHANGED] = 0
    counters[ROUND] += 1
    return standing(verdict, lower, upper, root, left) != 0 or verdict[root] != 0


@njit(cache=True, nogil=True, _nrt=False)
def lao_kernel(
    model: Any,
    arrays: Any,
    per_state: Any,
    graph: Any,
    path: Any,
    counters: Any,
    asked: Any,
    slice_size: int,
) -> int:
    """Go on with a query; without frames, a round begins.

    Args:
        per_state: verdict, lower, upper, first, actions, stamp.
        graph: choices, outcomes, listed.
        path: frames, chosen, next, visited.
        asked: the state, the deviations left, the limit.
    """
    verdict, lower, upper, first, actions, stamp = per_state
    choices, outcomes, listed = graph
    _, _, following, visited = path
    root, left, limit = asked
    for _ in range(slice_size):
        s = root
        if counters[DEPTH] > 0:
            if _back_up_last(per_state, graph, path, counters, limit):
                continue
            top = counters[DEPTH] - 1
            s = outcomes[following[top], 0]
            if verdict[s] != 0 or stamp[s] == counters[ROUND]:
                following[top] += 1
                continue
        elif _end_round(counters, verdict, lower, upper, visited, root, left):
            return DONE
        if first[s] >= 0:
            _pass(per_state, graph, path, counters, limit, s)
        else:
            result = expand(
                model, arrays, verdict, first, actions, choices, outcomes, listed, counters, s
            )
            if result != 0:
                return result
            backup(verdict, lower, first, actions, choices, outcomes, limit, s)
            counters[CHANGED] = 1
        stamp[s] = counters[ROUND]
        visited[counters[VISITED]] = s
        counters[VISITED] += 1
    return TIME
