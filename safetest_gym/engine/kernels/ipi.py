"""Improved policy iteration ([S] Alg. 4): rounds of depth-first search, without recursion.

A round gives each state its first action all of whose outcomes returned "maybe safe", and
looks at every outcome of every action it tries. A round that found no new unsafe state
proves all its states safe; a round that ends with the root unsafe proves that; others are
repeated, knowing more unsafe states.

(The paper also repeats a round that only met states known to be unsafe before. That would
go on forever where a state's first action is unsafe and another one is not.)

One frame per state on the path, ``frames[depth]``: STATE, POSITION (of the action open, or
to be opened), START (of its outcomes in ``outcomes``; -1 if none is open), NEXT (outcome to
look at), BAD (an outcome was unsafe). ``seen[s]`` is the last round that visited ``s``.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.actions import next_position
from safetest_gym.engine.kernels.search import (
    DONE,
    EXPANDED,
    NO_ROOM,
    OWN,
    TIME,
    is_dead_end,
    open_action,
    open_actions,
)

__all__ = [
    "DEPTH",
    "FOUND_UNSAFE",
    "NO_FRAMES",
    "NO_OUTCOMES",
    "NO_VISITED",
    "NUM_COUNTERS",
    "OUTCOMES",
    "RECHECK",
    "ROUND",
    "VISITED",
    "ipi_kernel",
]

DEPTH, OUTCOMES, VISITED, ROUND, FOUND_UNSAFE, RECHECK = range(OWN, OWN + 6)
"""Counters: frames; outcomes of all open actions; states of this round; its number; did it
find an unsafe state; look at an action's outcomes again before relying on it."""

NUM_COUNTERS = OWN + 6

NO_FRAMES, NO_OUTCOMES, NO_VISITED = range(NO_ROOM, NO_ROOM + 3)

_STATE, _POSITION, _START, _NEXT, _BAD = range(5)


@njit(forceinline=True, _nrt=False)
def _enter(counters: Any, frames: Any, seen: Any, visited: Any, s: int) -> int:
    """Put ``s`` on the path."""
    depth = counters[DEPTH]
    if depth == frames.shape[0]:
        return NO_FRAMES
    if counters[VISITED] == visited.shape[0]:
        return NO_VISITED
    frames[depth, _STATE] = s
    frames[depth, _POSITION] = 0
    frames[depth, _START] = -1
    counters[DEPTH] = depth + 1
    counters[EXPANDED] += 1
    seen[s] = counters[ROUND]
    visited[counters[VISITED]] = s
    counters[VISITED] += 1
    return 0


@njit(forceinline=True, _nrt=False)
def _look(counters: Any, verdict: Any, seen: Any, frames: Any, outcomes: Any, visited: Any) -> int:
    """The next outcome of the last frame's action."""
    top = counters[DEPTH] - 1
    o = outcomes[frames[top, _NEXT]]
    if verdict[o] == 0 and seen[o] != counters[ROUND]:
        return _enter(counters, frames, seen, visited, o)
    if verdict[o] == 2:
        frames[top, _BAD] = 1
    frames[top, _NEXT] += 1
    return 0


@njit(forceinline=True, _nrt=False)
def _close(counters: Any, verdict: Any, frames: Any, outcomes: Any) -> None:
    """All outcomes were looked at: take the action, or move on to the next one."""
    top = counters[DEPTH] - 1
    start = frames[top, _START]
    if counters[RECHECK]:
        for i in range(start, counters[OUTCOMES]):
            if verdict[outcomes[i]] == 2:
                frames[top, _BAD] = 1
    counters[OUTCOMES] = start
    if frames[top, _BAD]:
        frames[top, _START] = -1
        frames[top, _POSITION] += 1
    else:
        counters[DEPTH] = top


@njit(forceinline=True, _nrt=False)
def _open(model: Any, arrays: Any, verdict: Any, frames: Any, outcomes: Any, counters: Any) -> int:
    """Open the next action of the last frame; without one the state is unsafe."""
    block, way, policy = model
    states, table, succ, wide, found, scratch, span = arrays
    top = counters[DEPTH] - 1
    s = frames[top, _STATE]
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    position = frames[top, _POSITION] - 1
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
        rows = open_action(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
        )
        if rows == 0:
            continue
        frames[top, _POSITION] = position
        if rows < 0:
            return -rows
        start = counters[OUTCOMES]
        if start + rows > outcomes.shape[0]:
            return NO_OUTCOMES
        for r in range(rows):
            outcomes[start + r] = found[r]
        counters[OUTCOMES] = start + rows
        frames[top, _START] = frames[top, _NEXT] = start
        frames[top, _BAD] = 0
        return 0
    if is_dead_end(block, states, s, count):
        verdict[s] = 1
    else:
        verdict[s] = 2
        counters[FOUND_UNSAFE] = 1
    counters[DEPTH] = top
    return 0


@njit(forceinline=True, _nrt=False)
def _end_round(counters: Any, verdict: Any, visited: Any, root: int) -> bool:
    """Is the root settled? If not, the next round begins."""
    if counters[VISITED] > 0 and not counters[FOUND_UNSAFE]:
        for i in range(counters[VISITED]):
            verdict[visited[i]] = 1
    counters[VISITED] = counters[FOUND_UNSAFE] = 0
    counters[ROUND] += 1
    return verdict[root] != 0


@njit(cache=True, nogil=True, _nrt=False)
def ipi_kernel(
    model: Any, arrays: Any, per_state: Any, lists: Any, counters: Any, root: int, slice_size: int
) -> int:
    """Go on with the query for ``root``; without frames, a round begins.

    Args:
        per_state: verdict, seen.
        lists: frames, outcomes, visited.
    """
    verdict, seen = per_state
    frames, outcomes, visited = lists
    for _ in range(slice_size):
        if counters[DEPTH] == 0:
            if _end_round(counters, verdict, visited, root):
                return DONE
            result = _enter(counters, frames, seen, visited, root)
        elif frames[counters[DEPTH] - 1, _START] < 0:
            result = _open(model, arrays, verdict, frames, outcomes, counters)
        elif frames[counters[DEPTH] - 1, _NEXT] < counters[OUTCOMES]:
            result = _look(counters, verdict, seen, frames, outcomes, visited)
        else:
            _close(counters, verdict, frames, outcomes)
            result = 0
        if result != 0:
            return result
    return TIME
