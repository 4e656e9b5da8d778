"""Value iteration with the r-Bellman operator: explore all that can be reached, then sweep.

Uses the arrays of `kernels.explicit`; a sweep without a change proves all values exact.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.bellman import backup, solve
from safetest_gym.engine.kernels.explicit import (
    CHOICES,
    LISTED,
    OUTCOMES,
    OWN_COUNTERS,
    QUEUE,
    explore,
)
from safetest_gym.engine.kernels.search import DONE, TIME

__all__ = ["CHANGED", "NEXT", "NUM_COUNTERS", "PHASE", "vi_kernel"]

NEXT, PHASE, CHANGED = range(OWN_COUNTERS, OWN_COUNTERS + 3)
"""Counters: states of this sweep still to come, the phase, did the sweep change a value."""

NUM_COUNTERS = OWN_COUNTERS + 3

EXPLORE, SWEEP, SETTLE = range(3)


@njit(cache=True, nogil=True, _nrt=False)
def vi_kernel(
    model: Any, arrays: Any, per_state: Any, lists: Any, counters: Any, limit: int, slice_size: int
) -> int:
    """Go on with the query whose root was put into the queue.

    Args:
        per_state: verdict, lower, upper, first, actions.
        lists: choices, outcomes, listed, queue.
    """
    verdict, lower, upper, first, actions = per_state
    choices, outcomes, listed, queue = lists
    for _ in range(slice_size):
        if counters[PHASE] == EXPLORE and counters[QUEUE] > 0:
            result = explore(
                model, arrays, verdict, first, actions, choices, outcomes, listed, queue, counters
            )
            if result != 0:
                return result
        elif counters[NEXT] > 0 and counters[PHASE] != EXPLORE:
            counters[NEXT] -= 1
            s = listed[counters[NEXT]]
            if counters[PHASE] == SETTLE:
                solve(verdict, lower, upper, s)
            elif verdict[s] == 0 and backup(
                verdict, lower, first, actions, choices, outcomes, limit, s
            ):
                counters[CHANGED] = 1
        elif counters[PHASE] == SETTLE:
            counters[CHOICES] = counters[OUTCOMES] = counters[LISTED] = 0
            return DONE
        else:
            again = counters[PHASE] == EXPLORE or counters[CHANGED]
            counters[PHASE] = SWEEP if again else SETTLE
            counters[NEXT] = counters[LISTED]
            counters[CHANGED] = 0
    return TIME
