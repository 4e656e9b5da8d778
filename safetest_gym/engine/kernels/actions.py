"""A state's actions one after the other, in an order, with their outcomes as rows.

Deciders see a state's actions as positions 0, 1, …: labels, composed edges or (in a dtmc)
the one choice there is, put in order. With a radius a state has one more word, the
deviations left: an action that is not the policy's own costs one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import (
    call_choose,
    call_score,
    float64_at,
    int64_at,
    uint8_at,
)
from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "APP",
    "LEARN",
    "NO_CHOICE",
    "RAND",
    "RANKED",
    "ROWS_ERROR",
    "is_last",
    "next_position",
    "open_state",
    "rows_of",
]

APP, LEARN, RAND, RANKED = range(4)
"""Orders: as numbered, by the policy's scores, by a hash of the state, by ranks given."""

_GOLDEN = -7046029254386353131

ROWS_ERROR, NO_CHOICE = -1, -3
"""No value; the policy has no action. -2 means that the row buffers must grow."""

NONE_APPLICABLE = 1 << 40
"""The policy's action in a dead end."""


@njit(inline="always")
def _values(block: Any, doubles: Any) -> None:
    """The state as doubles, for policies."""
    call(block[c.UNPACK], (block[c.STATE], block[c.VALUES]))
    whole = int64_at(block[c.VALUES])
    broken = float64_at(block[c.VALUES])
    for v in range(block[c.VARIABLES]):
        doubles[v] = broken[v] if block[c.FLOATING] else float(whole[v])


@njit(cache=True, nogil=True, _nrt=False)
def _choices(block: Any, firsts: Any, numbers: Any) -> int:
    """Rows of every action of a state that has composed edges as actions; how many."""
    count = call(
        block[c.EXPAND],
        (
            block[c.STATE],
            block[c.SUCC],
            block[c.PROB],
            block[c.NUMBER],
            block[c.ENDS],
            block[c.CAPACITY],
        ),
    )
    if count < 0:
        return count
    number = int64_at(block[c.NUMBER])
    choices = 0
    for r in range(count):
        if r == 0 or (block[c.GRANULARITY] == 0 and number[r] != number[r - 1]):
            firsts[choices] = r
            numbers[choices] = number[r] if block[c.GRANULARITY] == 0 else 0
            choices += 1
    firsts[choices] = count
    return choices


@njit(cache=True, nogil=True, _nrt=False)
def _by_hash(block: Any, order: Any, count: int) -> None:
    """A permutation that depends on the state alone."""
    state = int64_at(block[c.STATE])
    h = 0
    for w in range(block[c.WORDS]):
        h = (h ^ state[w]) * _GOLDEN
        h ^= (h >> 32) & 0xFFFFFFFF
    for i in range(count):
        order[i] = i
    for i in range(count - 1, 0, -1):
        h = h * 6364136223846793005 + 1442695040888963407
        j = ((h >> 33) & 0x7FFFFFFF) % (i + 1)
        order[i], order[j] = order[j], order[i]


@njit(cache=True, nogil=True, _nrt=False)
def _by_score(scores: Any, outputs: Any, numbers: Any, order: Any, count: int) -> None:
    """Highest score first, ties to the lowest number; ``outputs`` maps actions to scores."""
    for i in range(count):
        at = i
        mine = scores[outputs[numbers[i]]]
        while at > 0 and scores[outputs[numbers[order[at - 1]]]] < mine:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@njit(cache=True, nogil=True, _nrt=False)
def _by_rank(rank: Any, numbers: Any, order: Any, count: int) -> None:
    """Lowest rank first."""
    for i in range(count):
        at = i
        mine = rank[numbers[i]]
        while at > 0 and rank[numbers[order[at - 1]]] > mine:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@njit(cache=True, nogil=True, _nrt=False)
def _own_action(block: Any, policy: Any, scratch: Any, count: int) -> int:
    """The policy's action, `NONE_APPLICABLE` in a dead end, or an error."""
    mask = uint8_at(block[c.MASK])
    if block[c.GRANULARITY] == 1:
        if call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK])) < 0:
            return ROWS_ERROR
    else:
        for a in range(block[c.ACTIONS]):
            mask[a] = 0
        for i in range(count):
            mask[scratch[1, i]] = 1
    own = call_choose(policy[0], policy[2], place(scratch, 4 * scratch.shape[1]), block[c.MASK])
    if own >= 0:
        return own
    for a in range(block[c.ACTIONS]):
        if mask[a]:
            return NO_CHOICE
    return NONE_APPLICABLE


@njit(cache=True, nogil=True, _nrt=False)
def open_state(block: Any, way: int, policy: Any, scratch: Any) -> int:
    """Put the actions of the state at ``block[STATE]`` in order; how many positions.

    Args:
        way: `APP`, `LEARN`, `RAND` or `RANKED`.
        policy: addresses of choose (0: no radius), score and data, or zeros.
        scratch: int64 rows: 0 first rows, 1 numbers, 2 the order (1 is made as 0, 1, 2, …,
            and 2 as well, or by rank), 3 the policy's own action or -1, and if the block's
            mask is that of the state; 4 and 5 states and scores as floats; 6 the rank of
            every action for `RANKED`.

    Returns:
        The number of positions, `ROWS_ERROR`, -2, or `NO_CHOICE`.
    """
    firsts, numbers, order = scratch[0], scratch[1], scratch[2]
    if block[c.GRANULARITY] == 1:
        count = block[c.ACTIONS]  # `numbers`, and often `order`, stay as they were made
    else:
        count = _choices(block, firsts, numbers)
        if count < 0:
            return count
    scratch[3, 0], scratch[3, 1] = -1, 0
    if policy[2]:
        _values(block, scratch[4].view(np.float64))
    if policy[0] and count > 0:
        own = _own_action(block, policy, scratch, count)
        if own < 0:
            return own
        scratch[3, 0], scratch[3, 1] = own, block[c.GRANULARITY] == 1
    if way == RAND:
        _by_hash(block, order, count)
    elif way == LEARN:
        width = scratch.shape[1]
        call_score(policy[1], policy[2], place(scratch, 4 * width), place(scratch, 5 * width))
        header = int64_at(policy[2])
        _by_score(
            scratch[5].view(np.float32), int64_at(policy[2] + header[5]), numbers, order, count
        )
    elif block[c.GRANULARITY] == 1:
        return count
    elif way == RANKED:
        _by_rank(scratch[6], numbers, order, count)
    else:
        for i in range(count):
            order[i] = i
    return count


@njit(forceinline=True, _nrt=False)
def next_position(block: Any, position: int, count: int, scratch: Any) -> int:
    """The first position from ``position`` on that is not known to be not applicable.

    Labels are tried without a look at the mask until one turns out to be not applicable.
    """
    if scratch[3, 1] != 0:
        mask, order = uint8_at(block[c.MASK]), scratch[2]
        while position < count and mask[order[position]] == 0:
            position += 1
    return position


@njit(forceinline=True, _nrt=False)
def is_last(block: Any, position: int, count: int, scratch: Any) -> bool:
    """Is it known that no action behind ``position`` is applicable?"""
    if block[c.GRANULARITY] == 1 and scratch[3, 1] == 0:
        return position + 1 == count
    return next_position(block, position + 1, count, scratch) == count


@njit(cache=True, nogil=True, _nrt=False)
def rows_of(block: Any, position: int, scratch: Any, span: Any) -> int:
    """span[0:2]: the rows of the action at ``position``; its number, or a negative error."""
    at = scratch[2, position]
    if block[c.GRANULARITY] == 1:
        span[0] = 0
        span[1] = call(
            block[c.OUTCOMES],
            (
                block[c.STATE],
                at,
                block[c.SUCC],
                block[c.PROB],
                block[c.NUMBER],
                block[c.CAPACITY],
            ),
        )
        if span[1] == 0 and call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK])) >= 0:
            scratch[3, 1] = 1
        return at if span[1] >= 0 else span[1]
    span[0], span[1] = scratch[0, at], scratch[0, at + 1]
    return scratch[1, at]
