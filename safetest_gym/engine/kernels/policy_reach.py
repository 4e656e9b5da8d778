"""Exhaust the states reachable under a policy, up to the first that fails.

The lean sibling of `policy_graph`: no edges are kept, only where each state was first seen.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import int64_at
from safetest_gym.engine.kernels.following import (
    FAILING,
    NO_ACTION,
    RUNNING,
    choose_kernel,
    look_kernel,
    rows_kernel,
)
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import place

__all__ = ["FAILED", "LEADS", "NO_STATES", "reach_kernel"]

NO_STATES = -4
"""Result besides those of `following`: the state table must grow."""
FAILED = 1
"""The state that is next to be expanded fails."""
LEADS = -2
"""Parents up to this one mark states that are known to lead to a failing one."""


@njit(cache=True, nogil=True)
def reach_kernel(
    block: Any,
    policy: Any,
    states: Any,
    table: Any,
    parents: Any,
    chosen: Any,
    counters: Any,
    span: Any,
    doubles: Any,
    found: Any,
    number: Any,
    joined: Any,
    stop: int,
) -> int:
    """Expand known states up to number ``stop``; 0, `FAILED` or why it stopped.

    ``counters``: states known, states expanded, transitions, the state of ``chosen[0]``, rows
    of ``joined``. ``parents[s]`` is the state that s was first seen from, or `LEADS`. ``found``
    (1, W) and ``number`` (1,) are scratch. If there is no ``policy[0]``, ``chosen`` has the
    actions. ``joined`` (R, 2) gets states and outcomes of theirs that had been seen before and
    are known to lead to a failing state, as many as fit.
    """
    width = states.shape[1]
    room = min(states.shape[0], (table.shape[0] * 5) // 8)
    while counters[1] < min(stop, counters[0]):
        s = counters[1]
        block[c.STATE] = place(states, s * width)
        kind = look_kernel(block)
        if kind < 0:
            return kind
        if kind == FAILING:
            return FAILED
        if kind == RUNNING:
            action = choose_kernel(block, policy, doubles) if policy[0] else chosen[s - counters[3]]
            if action < 0:
                return NO_ACTION
            status = rows_kernel(block, action, span)
            if status < 0:
                return status
            count = span[1] - span[0]
            if counters[0] + count > room:
                return NO_STATES
            succ = int64_at(block[c.SUCC])
            for r in range(count):
                for w in range(width):
                    found[0, w] = succ[(span[0] + r) * width + w]
                known = intern_rows_kernel(states, table, counters[0], found, 1, number)
                if known > counters[0]:
                    parents[counters[0]] = s
                    counters[0] = known
                elif counters[4] < joined.shape[0] and parents[number[0]] <= LEADS:
                    joined[counters[4], 0] = s
                    joined[counters[4], 1] = number[0]
                    counters[4] += 1
            counters[2] += count
        counters[1] = s + 1
    return 0
