"""TarjanSafe ([J] Alg. 2, [S] Alg. 1): a depth-first search without recursion.

A state on the path counts as safe for those below it; what was proved that way is kept
only for the root of a component, the one state that depends on nobody above. Unsafe
verdicts never depend on the path.

One frame per state on the path, ``frames[depth]``:
STATE, LEFT (deviations left), POSITION (of the action open, or to be opened), START (of
its outcomes in ``outcomes``; -1 if none is open), NEXT (outcome to look at), LOW (the
uppermost frame it depends on), BELOW (the last frame further up with the same state, or
-1), AFTER (deviations left after the action). ``place[s]`` is the last frame of ``s``, the
one with the fewest deviations left, or -1.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.actions import next_position
from safetest_gym.engine.kernels.deviations import COST, FIRST, open_plain, standing
from safetest_gym.engine.kernels.search import (
    DONE,
    EXPANDED,
    NO_ROOM,
    TIME,
    is_dead_end,
    open_actions,
)

__all__ = ["DEPTH", "NO_FRAMES", "NO_OUTCOMES", "NUM_COUNTERS", "OUTCOMES", "tarjan_kernel"]

DEPTH, OUTCOMES = FIRST, FIRST + 1
"""Counters: frames; outcomes of all open actions."""

NUM_COUNTERS = FIRST + 2

NO_FRAMES, NO_OUTCOMES = NO_ROOM, NO_ROOM + 1

_STATE, _LEFT, _POSITION, _START, _NEXT, _LOW, _BELOW, _AFTER = range(8)


@njit(forceinline=True, _nrt=False)
def _push(counters: Any, frames: Any, place: Any, s: int, left: int) -> None:
    depth = counters[DEPTH]
    frames[depth, _STATE] = s
    frames[depth, _LEFT] = left
    frames[depth, _POSITION] = 0
    frames[depth, _START] = -1
    frames[depth, _LOW] = depth
    frames[depth, _BELOW] = place[s]
    place[s] = depth
    counters[DEPTH] = depth + 1
    counters[EXPANDED] += 1


@njit(forceinline=True, _nrt=False)
def _pop(counters: Any, frames: Any, place: Any) -> int:
    """Take the last frame off the path; its place."""
    top = counters[DEPTH] - 1
    place[frames[top, _STATE]] = frames[top, _BELOW]
    counters[DEPTH] = top
    return top


@njit(forceinline=True, _nrt=False)
def _return_safe(counters: Any, verdict: Any, upper: Any, frames: Any, place: Any) -> None:
    """The last frame's action is done: safe, if the frames that it depends on are."""
    top = _pop(counters, frames, place)
    s, left = frames[top, _STATE], frames[top, _LEFT]
    counters[OUTCOMES] = frames[top, _START]
    if frames[top, _LOW] == top:
        upper[s] = left if verdict[s] == 0 else min(upper[s], left)
        verdict[s] = 1
    if top > 0:
        frames[top - 1, _LOW] = min(frames[top - 1, _LOW], frames[top, _LOW])
        frames[top - 1, _NEXT] += 1


@njit(forceinline=True, _nrt=False)
def _look(
    counters: Any, verdict: Any, lower: Any, upper: Any, frames: Any, place: Any, outcomes: Any
) -> int:
    """The next outcome of the last frame's action."""
    top = counters[DEPTH] - 1
    o, left = outcomes[frames[top, _NEXT]], frames[top, _AFTER]
    known = standing(verdict, lower, upper, o, left)
    if known == 2:
        counters[OUTCOMES] = frames[top, _START]
        frames[top, _START] = -1
        frames[top, _POSITION] += 1
    elif known == 1:
        frames[top, _NEXT] += 1
    elif place[o] >= 0 and frames[place[o], _LEFT] == left:
        frames[top, _LOW] = min(frames[top, _LOW], frames[place[o], _LOW])
        frames[top, _NEXT] += 1
    elif top + 1 == frames.shape[0]:
        return NO_FRAMES
    else:
        _push(counters, frames, place, o, left)
    return 0


@njit(forceinline=True, _nrt=False)
def _open(
    model: Any,
    arrays: Any,
    verdict: Any,
    lower: Any,
    upper: Any,
    frames: Any,
    place: Any,
    outcomes: Any,
    counters: Any,
) -> int:
    """Open the next action of the last frame, or return from it."""
    block, way, policy = model
    states, table, succ, wide, found, scratch, span = arrays
    top = counters[DEPTH] - 1
    s, left = frames[top, _STATE], frames[top, _LEFT]
    count = open_actions(block, way, policy, states, scratch, counters, s)
    if count < 0:
        return -count
    position = frames[top, _POSITION] - 1
    while True:
        position = next_position(block, position + 1, count, scratch)
        if position == count:
            break
        rows = open_plain(
            block, states, table, succ, wide, found, scratch, span, verdict, counters, s, position
        )
        if rows < 0:
            frames[top, _POSITION] = position
            return -rows
        if rows == 0 or counters[COST] > left:
            continue
        start = counters[OUTCOMES]
        if start + rows > outcomes.shape[0]:
            frames[top, _POSITION] = position
            return NO_OUTCOMES
        for r in range(rows):
            outcomes[start + r] = found[r]
        counters[OUTCOMES] = start + rows
        frames[top, _POSITION] = position
        frames[top, _START] = frames[top, _NEXT] = start
        frames[top, _AFTER] = left - counters[COST]
        return 0
    if is_dead_end(block, states, s, count):
        verdict[s] = 1
        frames[top, _START] = counters[OUTCOMES]
        frames[top, _LOW] = top
        _return_safe(counters, verdict, upper, frames, place)
        upper[s] = 0
        return 0
    _pop(counters, frames, place)
    lower[s] = max(lower[s], left + 1)
    if states.shape[1] == succ.shape[1] or left == states[s, succ.shape[1]]:
        verdict[s] = 2
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def tarjan_kernel(
    model: Any, arrays: Any, per_state: Any, lists: Any, counters: Any, slice_size: int
) -> int:
    """Go on with the query whose root is the first frame.

    Args:
        per_state: verdict, lower, upper, place.
        lists: frames, outcomes.
    """
    verdict, lower, upper, place = per_state
    frames, outcomes = lists
    for _ in range(slice_size):
        if counters[DEPTH] == 0:
            return DONE
        top = counters[DEPTH] - 1
        if frames[top, _START] < 0:
            result = _open(model, arrays, verdict, lower, upper, frames, place, outcomes, counters)
        elif frames[top, _NEXT] == counters[OUTCOMES]:
            _return_safe(counters, verdict, upper, frames, place)
            result = 0
        else:
            result = _look(counters, verdict, lower, upper, frames, place, outcomes)
        if result != 0:
            return result
    return TIME
