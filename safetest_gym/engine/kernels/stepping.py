"""Take steps: pick one outcome of an action, follow it, look around.

Of several enabled edges with the action's label each is equally likely; then the edge's
probabilities decide. Randomness comes from one 64-bit counter per environment.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import float32_at, float64_at, int64_at, uint8_at
from safetest_gym.engine.kernels.native import call

__all__ = [
    "ERROR",
    "INAPPLICABLE",
    "NO_ROWS",
    "NO_ROWS_AFTER",
    "advance",
    "enter",
    "enter_kernel",
    "look",
    "pick_kernel",
    "pick_row",
    "random_unit",
    "settle",
    "settle_kernel",
    "step_kernel",
]

RUNNING, GOAL, FAILING, DEADLOCK = range(4)
INAPPLICABLE, NO_ROWS, ERROR, NO_ROWS_AFTER = -1, -2, -3, -4
"""Why there is no new state; after `NO_ROWS_AFTER` there is one: grow and settle."""

_GOLDEN = -7046029254386353131
_MIX1 = -4658895280553007687
_MIX2 = -7723592293110705685


@njit(inline="always")
def random_unit(address: int) -> float:
    """The next number in [0, 1) of the stream whose counter is at ``address`` (splitmix64)."""
    counter = int64_at(address)
    z = counter[0] + _GOLDEN
    counter[0] = z
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * _MIX1
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * _MIX2
    z = z ^ ((z >> 31) & 0x1FFFFFFFF)
    return ((z >> 11) & 0x1FFFFFFFFFFFFF) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def pick_row(prob: Any, number: Any, first: int, last: int, u: float) -> int:
    """The row that ``u`` in [0, 1) falls on, of rows ``first .. last - 1`` (at least one)."""
    edges = 1
    for r in range(first + 1, last):
        if number[r] != number[r - 1]:
            edges += 1
    left = u * edges
    for r in range(first, last):
        left -= prob[r]
        if left < 0:
            return r
    return last - 1


@njit(cache=True, nogil=True)
def pick_kernel(
    granularity: int,
    firsts: Any,
    ends: Any,
    prob: Any,
    number: Any,
    actions: Any,
    uniforms: Any,
    rows: Any,
) -> int:
    """rows[s]: the row of an expansion that state s goes to; ``-1 - s`` if it cannot.

    Actions are numbers of composed edges (granularity 0), of labels (1), or 0 (2).
    """
    for s in range(rows.shape[0]):
        action = actions[s]
        first, last = firsts[s], firsts[s + 1]
        if granularity == 1:
            if action < 0 or action >= ends.shape[1]:
                return -1 - s
            last = firsts[s] + ends[s, action]
            if action > 0:
                first = firsts[s] + ends[s, action - 1]
        elif granularity == 0:
            while first < last and number[first] != action:
                first += 1
            end = first
            while end < last and number[end] == action:
                end += 1
            last = end
        elif action != 0:
            return -1 - s
        if first >= last:
            return -1 - s
        rows[s] = pick_row(prob, number, first, last, uniforms[s])
    return 0


@njit(cache=True, nogil=True)
def _mask(block: Any) -> int:
    """Fill the mask of applicable actions; 1 if there is one, 0 if not, or an error."""
    mask = uint8_at(block[c.MASK])
    actions = block[c.ACTIONS]
    if block[c.GRANULARITY] == 1:
        if call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK])) < 0:
            return ERROR
        for a in range(actions):
            if mask[a]:
                return 1
        return 0
    count = _expand(block)
    if count < 0:
        return count
    if block[c.GRANULARITY] == 2:
        mask[0] = count > 0
        return min(count, 1)
    for a in range(actions):
        mask[a] = 0
    number = int64_at(block[c.NUMBER])
    for r in range(count):
        mask[number[r]] = 1
    return min(count, 1)


@njit(inline="always")
def _expand(block: Any) -> int:
    """Rows of all labels of the state; their number, or `NO_ROWS` or `ERROR`."""
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
        return NO_ROWS if count == -2 else ERROR
    return count


@njit(inline="always")
def _observe(block: Any) -> None:
    """Unpack the state and write the observation.

    Sizes are read once: the compiler cannot know that writing does not change the block.
    """
    call(block[c.UNPACK], (block[c.STATE], block[c.VALUES]))
    whole = int64_at(block[c.VALUES])
    broken = float64_at(block[c.VALUES])
    single = float32_at(block[c.OBSERVATION])
    double = float64_at(block[c.OBSERVATION])
    variables, floating, in_double = block[c.VARIABLES], block[c.FLOATING], block[c.DOUBLE]
    if block[c.OFFSET]:
        offset = float64_at(block[c.OFFSET])
        scale = float64_at(block[c.SCALE])
        for v in range(variables):
            value = broken[v] if floating else float(whole[v])
            value = (value - offset[v]) * scale[v]
            if in_double:
                double[v] = value
            else:
                single[v] = value
    elif in_double:
        for v in range(variables):
            double[v] = broken[v] if floating else float(whole[v])
    elif floating:
        for v in range(variables):
            single[v] = broken[v]
    else:
        for v in range(variables):
            single[v] = whole[v]


@njit(cache=True, nogil=True)
def look(block: Any) -> int:
    """Fill mask, values, observation and expressions from the state; how it is."""
    kind = call(block[c.CLASSIFY], (block[c.STATE],))
    if kind < 0:
        return ERROR
    possible = _mask(block)
    if possible < 0:
        return possible
    _observe(block)
    if block[c.EVALUATE] and call(block[c.EVALUATE], (block[c.STATE], block[c.VALUE_AFTER])) < 0:
        return ERROR
    if kind & 1:
        return FAILING
    if kind & 2:
        return GOAL
    return RUNNING if possible else DEADLOCK


@njit(cache=True, nogil=True)
def settle(block: Any) -> int:
    """Look around in a new state and work out the reward."""
    status = look(block)
    if status == NO_ROWS:
        return NO_ROWS_AFTER
    if status >= 0:
        before = float64_at(block[c.VALUE_BEFORE])
        after = float64_at(block[c.VALUE_AFTER])
        reward = float64_at(block[c.CONSTANTS])[status]
        weights = float64_at(block[c.WEIGHTS])
        for k in range(block[c.EXPRESSIONS]):
            reward += weights[5 * k] * before[k] + weights[5 * k + 1 + status] * after[k]
        float64_at(block[c.REWARD])[0] = reward
    return status


@njit(cache=True, nogil=True)
def advance(block: Any, action: int) -> int:
    """Follow one outcome of ``action`` and look around; how the new state is, or why not."""
    if action < 0 or action >= block[c.ACTIONS]:
        return INAPPLICABLE
    if not uint8_at(block[c.MASK])[action]:
        return INAPPLICABLE
    prob = float64_at(block[c.PROB])
    number = int64_at(block[c.NUMBER])
    first = 0
    if block[c.GRANULARITY] == 1:
        last = call(
            block[c.OUTCOMES],
            (
                block[c.STATE],
                action,
                block[c.SUCC],
                block[c.PROB],
                block[c.NUMBER],
                block[c.CAPACITY],
            ),
        )
        if last < 0:
            return NO_ROWS if last == -2 else ERROR
    else:
        last = _expand(block)
        if last < 0:
            return last
        if block[c.GRANULARITY] == 0:
            while number[first] != action:
                first += 1
            end = first
            while end < last and number[end] == action:
                end += 1
            last = end
    row = pick_row(prob, number, first, last, random_unit(block[c.RANDOM]))
    state = int64_at(block[c.STATE])
    succ = int64_at(block[c.SUCC])
    words = block[c.WORDS]
    for w in range(words):
        state[w] = succ[row * words + w]
    before = float64_at(block[c.VALUE_BEFORE])
    after = float64_at(block[c.VALUE_AFTER])
    for k in range(block[c.EXPRESSIONS]):
        before[k] = after[k]
    return settle(block)


@njit(cache=True, nogil=True)
def step_kernel(address: int, action: int) -> int:
    """`advance` of the environment whose block is at ``address``."""
    return advance(int64_at(address), action)


@njit(cache=True, nogil=True)
def settle_kernel(address: int) -> int:
    """`settle` of the environment whose block is at ``address``."""
    return settle(int64_at(address))


@njit(inline="always")
def enter(block: Any, words: int) -> int:
    """Go to the packed state at the address ``words`` and look around; how it is."""
    state = int64_at(block[c.STATE])
    given = int64_at(words)
    for w in range(block[c.WORDS]):
        state[w] = given[w]
    float64_at(block[c.REWARD])[0] = 0.0
    return look(block)


@njit(cache=True, nogil=True)
def enter_kernel(address: int, words: int) -> int:
    """`enter` of the environment whose block is at ``address``."""
    return enter(int64_at(address), words)
