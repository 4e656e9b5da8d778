"""The graph of all states that a policy can reach, grown state by state."""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import int64_at
from safetest_gym.engine.kernels.following import (
    NO_ACTION,
    RUNNING,
    choose_kernel,
    look_kernel,
    rows_kernel,
)
from safetest_gym.engine.kernels.intern import intern_rows_kernel
from safetest_gym.engine.kernels.native import place

__all__ = ["NO_STATES", "graph_kernel", "reach_back_kernel"]

NO_STATES = -4
"""Result besides those of `following`: the state or edge table must grow."""


@njit(cache=True, nogil=True)
def graph_kernel(
    block: Any,
    policy: Any,
    states: Any,
    table: Any,
    kinds: Any,
    firsts: Any,
    edges: Any,
    chosen: Any,
    counters: Any,
    span: Any,
    doubles: Any,
    found: Any,
    stop: int,
) -> int:
    """Expand known states up to number ``stop`` under the policy; 0 or why it stopped.

    ``counters``: states known, states expanded, edges. Outcomes of state s are
    ``edges[firsts[s]:firsts[s + 1]]``, ``kinds[s]`` says how runs stand there. If there is no
    ``policy[0]``, ``chosen[s]`` has the actions.
    """
    width = states.shape[1]
    while counters[1] < min(stop, counters[0]):
        s = counters[1]
        block[c.STATE] = place(states, s * width)
        kind = look_kernel(block)
        if kind < 0:
            return kind
        count = 0
        if kind == RUNNING:
            action = choose_kernel(block, policy, doubles) if policy[0] else chosen[s]
            if action < 0:
                return NO_ACTION
            status = rows_kernel(block, action, span)
            if status < 0:
                return status
            count = span[1] - span[0]
            room = min(states.shape[0], (table.shape[0] * 5) // 8)
            if counters[0] + count > room or counters[2] + count > edges.shape[0]:
                return NO_STATES
            succ = int64_at(block[c.SUCC])
            for r in range(count):
                for w in range(width):
                    found[0, w] = succ[(span[0] + r) * width + w]
                counters[0] = intern_rows_kernel(
                    states, table, counters[0], found, 1, edges[counters[2] + r :]
                )
        kinds[s] = kind
        counters[2] += count
        counters[1] = s + 1
        firsts[s + 1] = counters[2]
    return 0


@njit(cache=True, nogil=True)
def reach_back_kernel(
    firsts: Any, edges: Any, marked: Any, begin: Any, sources: Any, queue: Any
) -> None:
    """Mark, besides the states marked, all that can reach one of them.

    ``begin`` (n + 2), ``sources`` (edges) and ``queue`` (n) are scratch; begin is zeros.
    """
    n = marked.shape[0]
    for e in range(firsts[n]):
        begin[edges[e] + 2] += 1
    for s in range(n):
        begin[s + 2] += begin[s + 1]
    for s in range(n):
        for e in range(firsts[s], firsts[s + 1]):
            sources[begin[edges[e] + 1]] = s
            begin[edges[e] + 1] += 1
    last = 0
    for s in range(n):
        if marked[s]:
            queue[last] = s
            last += 1
    done = 0
    while done < last:
        s = queue[done]
        done += 1
        for k in range(begin[s], begin[s + 1]):
            source = sources[k]
            if not marked[source]:
                marked[source] = True
                queue[last] = source
                last += 1
