"""The r-Bellman operator ([J] 6.1) on the arrays of `kernels.explicit`.

``lower[s]`` is a lower bound of the least radius for which ``s`` is r-safe, and grows from
0 to its least fixed point; ``limit`` (radius + 1, or 1) stands for "not within the radius".
States that are settled have the value they end with, and are not backed up any more.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["backup", "greedy", "solve"]


@njit(forceinline=True, _nrt=False)
def greedy(
    verdict: Any,
    lower: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    limit: int,
    s: int,
) -> int:
    """The first best choice of ``s``, or -1 if all are beyond the limit.

    Bounds only grow, so a choice that is not above ``lower[s]`` is the best there can be.
    """
    best, least = -1, limit
    for c in range(first[s], first[s] + actions[s]):
        value = 0
        for e in range(choices[c, 0], choices[c + 1, 0]):
            o = outcomes[e, 0]
            value = max(value, limit if verdict[o] == 2 else lower[o])
        value += choices[c, 1]
        if value < least:
            best, least = c, value
            if value <= lower[s]:
                break
    return best


@njit(forceinline=True, _nrt=False)
def backup(
    verdict: Any,
    lower: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    limit: int,
    s: int,
) -> bool:
    """Raise ``lower[s]`` to the least value of its choices; did anything change?"""
    if actions[s] == 0:
        verdict[s] = 1  # a dead end; lower and upper are 0
        return True
    c = greedy(verdict, lower, first, actions, choices, outcomes, limit, s)
    if c < 0:
        lower[s] = limit
        verdict[s] = 2
        return True
    value = 0
    for e in range(choices[c, 0], choices[c + 1, 0]):
        value = max(value, lower[outcomes[e, 0]])
    value += choices[c, 1]
    if value <= lower[s]:
        return False
    lower[s] = value
    return True


@njit(forceinline=True, _nrt=False)
def solve(verdict: Any, lower: Any, upper: Any, s: int) -> None:
    """The bound of ``s`` is exact."""
    if verdict[s] == 0:
        verdict[s] = 1
        upper[s] = lower[s]
