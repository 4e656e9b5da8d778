"""LRTDP (Bonet and Geffner 2003) with the r-Bellman operator.

A trial backs up states along one run of the greedy policy until it meets a settled state,
or one of its own. Its states are then checked, the last one first: if no state of the
greedy graph below one can change, they are all settled; else they are backed up, and
another trial begins.

Uses the arrays of `kernels.explicit`. ``trail``, ``open_list`` and ``closed`` are as long as
there is room for states; ``stamp[s]`` is the last trial or check that saw ``s``.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.bellman import backup, greedy, solve
from safetest_gym.engine.kernels.deviations import standing
from safetest_gym.engine.kernels.explicit import OWN_COUNTERS, expand
from safetest_gym.engine.kernels.search import DONE, TIME

__all__ = ["AT", "NUM_COUNTERS", "PHASE", "RANDOM", "STAMP", "TRAIL", "lrtdp_kernel"]

PHASE, AT, TRAIL, OPEN, CLOSED, FAILED, STAMP, RANDOM = range(OWN_COUNTERS, OWN_COUNTERS + 8)
"""Counters: the phase; the trial's state; lengths of the lists; can a state of the check
change; the stamp given last; the state of the random numbers."""

NUM_COUNTERS = OWN_COUNTERS + 8

BEGIN, TRIAL, PICK, CHECK, UPDATE = range(5)


@njit(forceinline=True, _nrt=False)
def _draw(counters: Any, below: int) -> int:
    counters[RANDOM] = counters[RANDOM] * 6364136223846793005 + 1442695040888963407
    return ((counters[RANDOM] >> 33) & 0x7FFFFFFF) % below


@njit(forceinline=True, _nrt=False)
def _step(
    verdict: Any,
    lower: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    stamp: Any,
    trail: Any,
    counters: Any,
    limit: int,
) -> None:
    """Back up the trial's state, expanded before, and go on to an outcome by chance."""
    s = counters[AT]
    stamp[s] = counters[STAMP]
    trail[counters[TRAIL]] = s
    counters[TRAIL] += 1
    counters[PHASE] = PICK
    backup(verdict, lower, first, actions, choices, outcomes, limit, s)
    if verdict[s] != 0:
        return
    c = greedy(verdict, lower, first, actions, choices, outcomes, limit, s)
    unsettled = 0
    for e in range(choices[c, 0], choices[c + 1, 0]):
        unsettled += verdict[outcomes[e, 0]] == 0
    if unsettled == 0:
        return
    pick = _draw(counters, unsettled)
    for e in range(choices[c, 0], choices[c + 1, 0]):
        o = outcomes[e, 0]
        if verdict[o] == 0:
            if pick == 0 and stamp[o] != counters[STAMP]:
                counters[AT] = o
                counters[PHASE] = TRIAL
            pick -= 1


@njit(forceinline=True, _nrt=False)
def _pick(verdict: Any, stamp: Any, trail: Any, open_list: Any, counters: Any) -> None:
    """The trail's last state that is not settled is checked next."""
    while counters[TRAIL] > 0 and verdict[trail[counters[TRAIL] - 1]] != 0:
        counters[TRAIL] -= 1
    if counters[TRAIL] == 0:
        counters[PHASE] = BEGIN
        return
    counters[STAMP] += 1
    open_list[0] = trail[counters[TRAIL] - 1]
    stamp[open_list[0]] = counters[STAMP]
    counters[OPEN] = 1
    counters[CLOSED] = counters[FAILED] = 0
    counters[PHASE] = CHECK


@njit(forceinline=True, _nrt=False)
def _check(
    verdict: Any,
    lower: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    stamp: Any,
    open_list: Any,
    closed: Any,
    counters: Any,
    limit: int,
) -> None:
    """Close the state opened last, expanded before; open what its choice leads to."""
    counters[OPEN] -= 1
    s = open_list[counters[OPEN]]
    closed[counters[CLOSED]] = s
    counters[CLOSED] += 1
    c = greedy(verdict, lower, first, actions, choices, outcomes, limit, s)
    if c < 0:
        counters[FAILED] = 1
        return
    value = 0
    for e in range(choices[c, 0], choices[c + 1, 0]):
        value = max(value, lower[outcomes[e, 0]])
    if value + choices[c, 1] > lower[s]:
        counters[FAILED] = 1
        return
    for e in range(choices[c, 0], choices[c + 1, 0]):
        o = outcomes[e, 0]
        if verdict[o] == 0 and stamp[o] != counters[STAMP]:
            stamp[o] = counters[STAMP]
            open_list[counters[OPEN]] = o
            counters[OPEN] += 1


@njit(forceinline=True, _nrt=False)
def _update(
    verdict: Any,
    lower: Any,
    upper: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    closed: Any,
    counters: Any,
    limit: int,
) -> None:
    """Settle the state closed last, or back it up; after the last one, go on."""
    if counters[CLOSED] == 0:
        counters[PHASE] = BEGIN if counters[FAILED] else PICK
        return
    counters[CLOSED] -= 1
    s = closed[counters[CLOSED]]
    if not counters[FAILED]:
        solve(verdict, lower, upper, s)
    elif verdict[s] == 0:
        backup(verdict, lower, first, actions, choices, outcomes, limit, s)


@njit(forceinline=True, _nrt=False)
def _think(
    verdict: Any,
    lower: Any,
    upper: Any,
    first: Any,
    actions: Any,
    choices: Any,
    outcomes: Any,
    stamp: Any,
    trail: Any,
    open_list: Any,
    closed: Any,
    counters: Any,
    asked: Any,
) -> bool:
    """One step that expands nothing; False when the root is settled."""
    root, left, limit = asked
    phase = counters[PHASE]
    if phase == TRIAL:
        _step(verdict, lower, first, actions, choices, outcomes, stamp, trail, counters, limit)
    elif phase == PICK:
        _pick(verdict, stamp, trail, open_list, counters)
    elif phase == CHECK and counters[OPEN] > 0:
        _check(
            verdict,
            lower,
            first,
            actions,
            choices,
            outcomes,
            stamp,
            open_list,
            closed,
            counters,
            limit,
        )
    elif phase == CHECK:
        counters[PHASE] = UPDATE
    elif phase == UPDATE:
        _update(verdict, lower, upper, first, actions, choices, outcomes, closed, counters, limit)
    else:
        counters[TRAIL] = 0
        counters[STAMP] += 1
        counters[AT] = root
        counters[PHASE] = TRIAL
        return verdict[root] == 0 and standing(verdict, lower, upper, root, left) == 0
    return True


@njit(cache=True, nogil=True, _nrt=False)
def lrtdp_kernel(
    model: Any,
    arrays: Any,
    per_state: Any,
    graph: Any,
    work: Any,
    counters: Any,
    asked: Any,
    slice_size: int,
) -> int:
    """Go on with a query.

    Args:
        per_state: verdict, lower, upper, first, actions, stamp.
        graph: choices, outcomes, listed.
        work: trail, open_list, closed.
        asked: the state, the deviations left, the limit.
    """
    verdict, lower, upper, first, actions, stamp = per_state
    choices, outcomes, listed = graph
    trail, open_list, closed = work
    for _ in range(slice_size):
        s = -1
        if counters[PHASE] == TRIAL:
            s = counters[AT]
        elif counters[PHASE] == CHECK and counters[OPEN] > 0:
            s = open_list[counters[OPEN] - 1]
        if s >= 0 and first[s] < 0:
            result = expand(
                model, arrays, verdict, first, actions, choices, outcomes, listed, counters, s
            )
            if result != 0:
                return result
        elif not _think(
            verdict,
            lower,
            upper,
            first,
            actions,
            choices,
            outcomes,
            stamp,
            trail,
            open_list,
            closed,
            counters,
            asked,
        ):
            return DONE
    return TIME
