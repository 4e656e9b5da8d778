"""Naive policy iteration ([S] Alg. 3): build a greedy policy, then evaluate it, in rounds.

Phases of a round, each a search from the root through states not yet settled:

- `BUILD`: ``choice[s]`` is the position of the first action without an outcome known to be
  unsafe, or of the first action if there is none (or if this is the first policy).
- `MARK`: in post order over the policy's graph, ``V(s) = min over actions of max over
  outcomes``: a state is unsafe if every action has an unsafe outcome.

``stamp[s]`` is twice the number of the last round that built ``s``, plus one if it was
marked as well. Frames of the second search: state, start of its outcomes, next one.
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
    open_action,
    open_actions,
)

__all__ = [
    "DEPTH",
    "INITIAL",
    "NO_FRAMES",
    "NO_OUTCOMES",
    "NO_VISITED",
    "NUM_COUNTERS",
    "OUTCOMES",
    "PHASE",
    "ROUND",
    "SAW_UNSAFE",
    "VISITED",
    "npi_kernel",
]

DEPTH, OUTCOMES, VISITED, ROUND, SAW_UNSAFE, PHASE, INITIAL = range(OWN, OWN + 7)
"""Counters: frames; outcomes waiting; states of this round; its number; did it see an
unsafe state; the phase; is this the first policy."""

NUM_COUNTERS = OWN + 7

NO_FRAMES, NO_OUTCOMES, NO_VISITED = range(NO_ROOM, NO_ROOM + 3)

BEGIN, BUILD, MARK = range(3)

_STATE, _START, _NEXT = range(3)


@njit(forceinline=True, _nrt=False)
def _select(
    block: Any, arrays: Any, verdict: Any, counters: Any, s: int, count: int, initial: int
) -> int:
    """Position of the greedy action of ``s`` (open, its outcomes in ``found``).

    Returns:
        The position; ``count + position`` of the first action if every one has an unsafe
        outcome; ``2 * count`` without an applicable action; or minus a code.
    """
    states, table, succ, wide, found, scratch, span = arrays
    first = -1
    position = -1
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
        rows = open_action(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
        )
        if rows < 0:
            return rows
        if rows > 0:
            if first < 0:
                first = position
            unsafe = False
            for r in range(rows):
                unsafe = unsafe or verdict[found[r]] == 2
            if initial or not unsafe:
                return position
    return 2 * count if first < 0 else count + first


@njit(forceinline=True, _nrt=False)
def _build(
    model: Any,
    arrays: Any,
    verdict: Any,
    choice: Any,
    stamp: Any,
    outcomes: Any,
    visited: Any,
    counters: Any,
) -> int:
    """Give the state waiting last its action, and let the outcomes wait."""
    block, way, policy = model
    states, table, succ, wide, found, scratch, span = arrays
    top = counters[OUTCOMES] - 1
    s = outcomes[top]
    if verdict[s] != 0 or stamp[s] >= 2 * counters[ROUND]:
        counters[OUTCOMES] = top
        return 0
    if counters[VISITED] == visited.shape[0]:
        return NO_VISITED
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    selected = 2 * count
    if count > 0:
        selected = _select(block, arrays, verdict, counters, s, count, counters[INITIAL])
        if selected < 0:
            return -selected
    if selected == 2 * count:
        verdict[s] = 1
        counters[OUTCOMES] = top
        return 0
    position = selected % count
    rows = open_action(
        block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
    )
    if rows < 0:
        return -rows
    if top + rows > outcomes.shape[0]:
        return NO_OUTCOMES
    choice[s] = position
    stamp[s] = 2 * counters[ROUND]
    visited[counters[VISITED]] = s
    counters[VISITED] += 1
    counters[EXPANDED] += 1
    for r in range(rows):
        outcomes[top + r] = found[rows - 1 - r]
    counters[OUTCOMES] = top + rows
    return 0


@njit(forceinline=True, _nrt=False)
def _enter(
    model: Any,
    arrays: Any,
    verdict: Any,
    choice: Any,
    stamp: Any,
    frames: Any,
    outcomes: Any,
    counters: Any,
    s: int,
) -> int:
    """Put ``s`` on the path of the second search, with the outcomes of its action."""
    block, way, policy = model
    states, table, succ, wide, found, scratch, span = arrays
    depth = counters[DEPTH]
    if depth == frames.shape[0]:
        return NO_FRAMES
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    rows = open_action(
        block, states, table, succ, wide, found, scratch, span, verdict, counters, s, choice[s]
    )
    if rows < 0:
        return -rows
    start = counters[OUTCOMES]
    if start + rows > outcomes.shape[0]:
        return NO_OUTCOMES
    for r in range(rows):
        outcomes[start + r] = found[r]
    counters[OUTCOMES] = start + rows
    frames[depth, _STATE] = s
    frames[depth, _START] = frames[depth, _NEXT] = start
    counters[DEPTH] = depth + 1
    stamp[s] = 2 * counters[ROUND] + 1
    return 0


@njit(forceinline=True, _nrt=False)
def _leave(model: Any, arrays: Any, verdict: Any, frames: Any, counters: Any) -> int:
    """Evaluate the last frame's state, in post order."""
    block, way, policy = model
    states, _table, _succ, _wide, _found, scratch, _span = arrays
    top = counters[DEPTH] - 1
    s = frames[top, _STATE]
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    selected = _select(block, arrays, verdict, counters, s, count, 0)
    if selected < 0:
        return -selected
    if selected >= count:
        verdict[s] = 2
        counters[SAW_UNSAFE] = 1
    counters[OUTCOMES] = frames[top, _START]
    counters[DEPTH] = top
    return 0


@njit(forceinline=True, _nrt=False)
def _end_round(counters: Any, verdict: Any, visited: Any, root: int) -> bool:
    """Is the root settled?"""
    if not counters[SAW_UNSAFE]:
        for i in range(counters[VISITED]):
            verdict[visited[i]] = 1
    counters[VISITED] = counters[SAW_UNSAFE] = counters[INITIAL] = 0
    counters[PHASE] = BEGIN
    return verdict[root] != 0


@njit(cache=True, nogil=True, _nrt=False)
def npi_kernel(
    model: Any, arrays: Any, per_state: Any, lists: Any, counters: Any, root: int, slice_size: int
) -> int:
    """Go on with the query for ``root``.

    Args:
        per_state: verdict, choice, stamp.
        lists: frames, outcomes, visited.
    """
    verdict, choice, stamp = per_state
    frames, outcomes, visited = lists
    for _ in range(slice_size):
        result = 0
        if counters[PHASE] == BEGIN:
            if verdict[root] != 0:
                return DONE
            counters[ROUND] += 1
            outcomes[0] = root
            counters[OUTCOMES] = 1
            counters[PHASE] = BUILD
        elif counters[PHASE] == BUILD and counters[OUTCOMES] > 0:
            result = _build(model, arrays, verdict, choice, stamp, outcomes, visited, counters)
        elif counters[PHASE] == BUILD or counters[DEPTH] > 0:
            top = counters[DEPTH] - 1
            s = root
            if counters[PHASE] == MARK:
                at = frames[top, _NEXT]
                s = -1 if at == counters[OUTCOMES] else outcomes[at]
            if s < 0:
                result = _leave(model, arrays, verdict, frames, counters)
            elif verdict[s] == 0 and stamp[s] == 2 * counters[ROUND]:
                result = _enter(
                    model, arrays, verdict, choice, stamp, frames, outcomes, counters, s
                )
                if result == 0:
                    counters[PHASE] = MARK
            elif counters[PHASE] == BUILD:  # the root is a dead end
                counters[PHASE] = MARK
            else:
                if verdict[s] == 2:
                    counters[SAW_UNSAFE] = 1
                frames[top, _NEXT] += 1
        elif _end_round(counters, verdict, visited, root):
            return DONE
        if result != 0:
            return result
    return TIME
