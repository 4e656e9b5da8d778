"""Step many environments by one call: blocks in a row, episodes and resets included.

``progress[i]`` tells how far environment i is in the present step, so that a call that
had to stop for larger row buffers goes on where it was.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import float64_at, int64_at, uint8_at
from safetest_gym.engine.kernels.native import place
from safetest_gym.engine.kernels.stepping import (
    ERROR,
    FAILING,
    NO_ROWS_AFTER,
    RUNNING,
    advance,
    enter,
    settle,
)

__all__ = [
    "DISABLED",
    "DONE",
    "GROW",
    "INVALID",
    "NEXT_STEP",
    "NOOP",
    "RAISE",
    "REFUSED",
    "SAME_STEP",
    "TERMINATE",
    "TRUNCATED",
    "batch_kernel",
    "begin_kernel",
    "open_kernel",
]

TRUNCATED, INVALID = 4, 5
"""Outcomes besides the statuses of `kernels.stepping`."""

NEXT_STEP, SAME_STEP, DISABLED = range(3)
RAISE, TERMINATE, NOOP = range(3)
DONE, REFUSED, GROW, FAILED = range(4)
"""Why a call returned: all stepped; an action or an ended episode; row buffers; the model."""

TO_DO, MOVED, LEFT, STEPPED = range(4)
"""Progress: not begun; in the new state; out of the old episode; through."""


@njit(cache=True, nogil=True)
def begin_kernel(masks: Any, actions: Any, per_env: Any, pool: Any, settings: Any) -> int:
    """Begin a step: `DONE`, or `REFUSED` if an environment cannot take its action or go on."""
    _, _, _, ended, entered, _, cursor, progress = per_env
    autoreset, invalid = settings[0], settings[1]
    for i in range(actions.shape[0]):
        progress[i] = TO_DO
        refused = False
        if ended[i]:
            refused = autoreset != NEXT_STEP or cursor[i] >= pool.shape[1]
        elif entered[i] == 0:
            action = actions[i]
            known = 0 <= action < masks.shape[1]
            refused = not known or (invalid == RAISE and masks[i, action] == 0)
        if refused:
            settings[3] = i
            return REFUSED
    settings[4] = 0
    return DONE


@njit(cache=True, nogil=True)
def open_kernel(masks: Any, ended: Any, entered: Any) -> None:
    """Permit everything where nothing is applicable, which only an episode's end can be."""
    for i in range(masks.shape[0]):
        if ended[i] or entered[i] != 0:
            nothing = True
            for a in range(masks.shape[1]):
                if masks[i, a]:
                    nothing = False
            if nothing:
                for a in range(masks.shape[1]):
                    masks[i, a] = 1


@njit(cache=True, nogil=True)
def _move(block: Any, action: int, invalid: int) -> int:
    """Take an action; its outcome, or a negative reason."""
    reward = float64_at(block[c.REWARD])
    constants = float64_at(block[c.CONSTANTS])
    if not uint8_at(block[c.MASK])[action]:
        if invalid == TERMINATE:
            reward[0] = constants[FAILING]
            return INVALID
        reward[0] = constants[RUNNING]
        return RUNNING
    return advance(block, action)


@njit(inline="always")
def _proceed(block: Any, progress: int, entered: int, action: int, invalid: int) -> int:
    """Finish a move, end an episode that began at its end, or move."""
    if progress == MOVED:
        return settle(block)
    if entered != 0:
        float64_at(block[c.REWARD])[0] = float64_at(block[c.CONSTANTS])[entered]
        return entered
    return _move(block, action, invalid)


@njit(cache=True, nogil=True)
def _keep(i: int, current: Any, finals: Any) -> None:
    """Save what a reset within the step overwrites."""
    finals[0][i, :] = current[0][i, :]
    finals[1][i, :] = current[1][i, :]
    finals[2][i, :] = current[2][i, :]


@njit(cache=True, nogil=True)
def batch_kernel(
    blocks: Any,
    actions: Any,
    per_env: Any,
    finals: Any,
    current: Any,
    pool: Any,
    settings: Any,
) -> int:
    """Step every environment whose progress is not `STEPPED`; see `DONE` and the rest.

    Args:
        per_env: outcomes, rewards of the step, steps, ended, entered, was_reset, cursor,
            progress.
        finals: observations, states and masks before a reset within the step.
        current: observations, states, masks, and the rewards that blocks write.
        settings: autoreset, invalid action, step limit; and places for the environment
            that stopped the call and for whether a pool was used up.
    """
    outcomes, rewards, steps, ended, entered, was_reset, cursor, progress = per_env
    autoreset, invalid, limit = settings[0], settings[1], settings[2]
    for i in range(actions.shape[0]):
        if progress[i] == STEPPED:
            continue
        settings[3] = i
        block = int64_at(place(blocks, i * blocks.shape[1]))
        if progress[i] != LEFT and not ended[i]:
            status = _proceed(block, progress[i], entered[i], actions[i], invalid)
            if status < 0:
                progress[i] = MOVED if status == NO_ROWS_AFTER else TO_DO
                return FAILED if status == ERROR else GROW
            steps[i] += 1
            if status == RUNNING and steps[i] >= limit:
                status = TRUNCATED
            outcomes[i] = status
            rewards[i] = current[3][i]
            entered[i] = 0
            was_reset[i] = False
            ended[i] = status != RUNNING
            if status == RUNNING or autoreset != SAME_STEP:
                progress[i] = STEPPED
                continue
            _keep(i, current, finals)
        status = enter(block, place(pool, (i * pool.shape[1] + cursor[i]) * pool.shape[2]))
        if status < 0:
            progress[i] = LEFT
            return FAILED if status == ERROR else GROW
        if autoreset == NEXT_STEP:
            outcomes[i] = RUNNING
            rewards[i] = 0.0
            was_reset[i] = True
        cursor[i] += 1
        settings[4] |= cursor[i] == pool.shape[1]
        steps[i] = 0
        ended[i] = False
        entered[i] = status
        progress[i] = STEPPED
    return DONE
