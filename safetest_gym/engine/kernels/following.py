"""Follow a policy: single decisions and whole runs.

A policy is ``policy[0]``, the address of its ``choose`` (0: the caller says what it does),
and ``policy[1]``, that of its data. Everything else is in a block of `kernels.context`.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.choose import call_choose, float64_at, int64_at, uint8_at
from safetest_gym.engine.kernels.native import call, place
from safetest_gym.engine.kernels.stepping import pick_row, random_unit

__all__ = [
    "CYCLE",
    "DEAD_END",
    "ENDS",
    "ERROR",
    "FAILING",
    "GOAL",
    "LIMIT",
    "NO_ACTION",
    "NO_ROWS",
    "RUNNING",
    "begin_many_kernel",
    "choose_kernel",
    "look_kernel",
    "look_many_kernel",
    "move_many_kernel",
    "rows_kernel",
    "runs_kernel",
]

GOAL, FAILING, DEAD_END, CYCLE, LIMIT = range(5)
"""How a run ends; columns of the counts."""

ENDS = 5
RUNNING = 5
NO_ROWS, ERROR, NO_ACTION = -1, -2, -3
"""Why a kernel returned early: row buffers must grow; the model or the policy has no value."""


@njit(cache=True, nogil=True)
def look_kernel(block: Any) -> int:
    """How a run stands in the state at ``block[STATE]``; fills the mask if it goes on."""
    kind = call(block[c.CLASSIFY], (block[c.STATE],))
    if kind < 0:
        return ERROR
    if kind & 1:
        return FAILING
    if kind & 2:
        return GOAL
    mask, actions = uint8_at(block[c.MASK]), block[c.ACTIONS]
    if block[c.GRANULARITY] == 1:
        if call(block[c.APPLICABLE], (block[c.STATE], block[c.MASK])) < 0:
            return ERROR
    else:
        count = _expand(block)
        if count < 0:
            return count
        for a in range(actions):
            mask[a] = 0
        number = int64_at(block[c.NUMBER])
        for r in range(count):
            mask[number[r] if block[c.GRANULARITY] == 0 else 0] = 1
    for a in range(actions):
        if mask[a]:
            return RUNNING
    return DEAD_END


@njit(inline="always")
def _expand(block: Any) -> int:
    """Rows of all actions; how many, or an error."""
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
def _values(block: Any, doubles: Any) -> None:
    """The state as doubles, for policies."""
    call(block[c.UNPACK], (block[c.STATE], block[c.VALUES]))
    whole, broken = int64_at(block[c.VALUES]), float64_at(block[c.VALUES])
    for v in range(block[c.VARIABLES]):
        doubles[v] = broken[v] if block[c.FLOATING] else float(whole[v])


@njit(cache=True, nogil=True)
def choose_kernel(block: Any, policy: Any, doubles: Any) -> int:
    """What the policy does in the state at ``block[STATE]``, whose mask is filled."""
    _values(block, doubles)
    return call_choose(policy[0], policy[1], doubles.ctypes.data, block[c.MASK])


@njit(cache=True, nogil=True)
def rows_kernel(block: Any, action: int, span: Any) -> int:
    """span[0:2]: the rows of an applicable action; 0 or an error."""
    span[0] = 0
    if block[c.GRANULARITY] == 1:
        span[1] = call(
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
        if span[1] < 0:
            return NO_ROWS if span[1] == -2 else ERROR
        return 0
    count = _expand(block)
    if count < 0:
        return count
    span[1] = count
    if block[c.GRANULARITY] == 0:
        number = int64_at(block[c.NUMBER])
        while span[0] < count and number[span[0]] != action:
            span[0] += 1
        span[1] = span[0]
        while span[1] < count and number[span[1]] == action:
            span[1] += 1
    return 0


@njit(cache=True, nogil=True)
def _move(block: Any, action: int, span: Any, trail: Any) -> int:
    """Follow one outcome; `RUNNING`, `CYCLE` or an error.

    ``trail`` (4 + W int64) remembers a state to see cycles with: 0 steps since it was
    taken, 1 steps until the next one is, 2 whether there is one, 3 whether any step of
    the run had two outcomes. A cycle is certain: no chance lies on it (Brent's method).
    """
    status = rows_kernel(block, action, span)
    if status < 0:
        return status
    words = block[c.WORDS]
    state, succ = int64_at(block[c.STATE]), int64_at(block[c.SUCC])
    chance = False
    for w in range((span[0] + 1) * words, span[1] * words):
        if succ[w] != succ[w - words]:
            chance = True
            break
    row = span[0]
    if chance:
        row = pick_row(
            float64_at(block[c.PROB]),
            int64_at(block[c.NUMBER]),
            span[0],
            span[1],
            random_unit(block[c.RANDOM]),
        )
        trail[0], trail[1], trail[2], trail[3] = 0, 1, 0, 1
    same = trail[2] == 1
    for w in range(words):
        state[w] = succ[row * words + w]
        same = same and state[w] == trail[4 + w]
    if same:
        return CYCLE
    trail[0] += 1
    if trail[0] == trail[1]:
        trail[0], trail[1], trail[2] = 0, 2 * trail[1], 1
        for w in range(words):
            trail[4 + w] = state[w]
    return RUNNING


@njit(cache=True, nogil=True)
def _begin(block: Any, start: Any, trail: Any, seed: int) -> None:
    """Put a run at its start, with a random stream of its own."""
    state = int64_at(block[c.STATE])
    for w in range(block[c.WORDS]):
        state[w] = start[w]
    int64_at(block[c.RANDOM])[0] = seed
    trail[0], trail[1], trail[2], trail[3] = 0, 1, 0, 0


@njit(inline="always")
def _stream(seed: int, run: int) -> int:
    """Where the random stream of one run begins; far from those of other runs."""
    z = (seed + run) * -7046029254386353131
    z = (z ^ ((z >> 32) & 0xFFFFFFFF)) * -2960836687154530925
    return z ^ ((z >> 29) & 0x7FFFFFFFF)


@njit(cache=True, nogil=True)
def runs_kernel(
    block: Any,
    policy: Any,
    starts: Any,
    first: int,
    runs: int,
    limit: int,
    seed: int,
    progress: Any,
    counts: Any,
    steps: Any,
    trail: Any,
    span: Any,
    doubles: Any,
) -> int:
    """Run ``runs`` times from every start; counts[i, end] and steps[i] add up.

    ``first`` is the number of starts[0] among all, which decides its random streams.
    ``progress`` holds (start, run) to go on from. A run without any chance stands for all
    runs of its start. Returns 0 or why it stopped.
    """
    while progress[0] < starts.shape[0]:
        i, j = progress[0], progress[1]
        _begin(block, starts[i], trail, _stream(seed, (first + i) * runs + j))
        taken = 0
        end = look_kernel(block)
        while end == RUNNING:
            if taken == limit:
                end = LIMIT
                break
            action = choose_kernel(block, policy, doubles)
            if action < 0:
                return NO_ACTION
            end = _move(block, action, span, trail)
            taken += 1
            if end == RUNNING:
                end = look_kernel(block)
        if end < 0:
            return end
        times = 1 if trail[3] else runs - j
        counts[i, end] += times
        steps[i] += taken * times
        progress[1] += times
        if progress[1] == runs:
            progress[0] += 1
            progress[1] = 0
    return 0


@njit(cache=True, nogil=True)
def begin_many_kernel(
    block: Any, starts: Any, first: int, runs: int, seed: int, states: Any, random: Any, trails: Any
) -> None:
    """Put run i of the batch, the ``first + i``-th of all, where `runs_kernel` would."""
    for i in range(states.shape[0]):
        block[c.STATE] = place(states, i * states.shape[1])
        block[c.RANDOM] = place(random, i)
        _begin(block, starts[(first + i) // runs], trails[i], _stream(seed, first + i))


@njit(cache=True, nogil=True)
def look_many_kernel(block: Any, states: Any, kinds: Any, masks: Any, vectors: Any) -> int:
    """Look around in many states: how runs stand, masks, and the states as doubles.

    Returns 0, or ``-1 - i`` when ``kinds[i]`` is an error.
    """
    for i in range(states.shape[0]):
        block[c.STATE] = place(states, i * states.shape[1])
        block[c.MASK] = place(masks, i * masks.shape[1])
        kinds[i] = look_kernel(block)
        if kinds[i] < 0:
            return -1 - i
        _values(block, vectors[i])
    return 0


@njit(cache=True, nogil=True)
def move_many_kernel(
    block: Any,
    states: Any,
    random: Any,
    trails: Any,
    span: Any,
    which: Any,
    actions: Any,
    ends: Any,
) -> int:
    """Take one step of the runs ``which`` not yet taken (ends is -1); 0 or an error."""
    for k in range(which.shape[0]):
        i = which[k]
        if ends[k] < 0:
            block[c.STATE] = place(states, i * states.shape[1])
            block[c.RANDOM] = place(random, i)
            status = _move(block, actions[k], span, trails[i])
            if status < 0:
                return status
            ends[k] = status
    return 0
