"""The test that leaves the fewest contradictions between demands, for one node of a new tree.

Demands come as kinds: kind k wants one of the actions ``good[k]`` to stand above all of
``bad[k]``. Sets of actions are bits, in words; shapes (K, W).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["CONSISTENT", "INSEPARABLE", "split_kernel", "stuck_kernel"]

CONSISTENT = -1
"""Instead of a feature: one ranking serves all demands of the node."""
INSEPARABLE = -2
"""Instead of a feature: demands contradict each other, and all points are equal."""


@njit(cache=True, nogil=True)
def stuck_kernel(good: Any, bad: Any, counts: Any, every: Any, scratch: Any) -> int:
    """How many demands, ``counts[k]`` of each kind, no ranking satisfies together.

    Whatever action is bad for none of those left stands on top and satisfies those it is good
    for. ``every``: all actions, (W,). ``scratch``: bool (K,), and two sets.
    """
    left, actions, blocked = scratch
    words = every.shape[0]
    total = 0
    for k in range(counts.shape[0]):
        left[k] = False
        if counts[k] > 0:
            for w in range(words):
                left[k] |= bad[k, w] != 0
        if left[k]:
            total += counts[k]
    actions[:] = every
    while total > 0:
        blocked[:] = 0
        for k in range(counts.shape[0]):
            if left[k]:
                for w in range(words):
                    blocked[w] |= bad[k, w]
        is_open = False  # does an action that is bad for none remain?
        for w in range(words):
            top = actions[w] & ~blocked[w]
            is_open |= top != 0
            actions[w] &= blocked[w]
            blocked[w] = top
        if not is_open:
            return total
        for k in range(counts.shape[0]):
            if left[k]:
                for w in range(words):
                    if good[k, w] & blocked[w]:
                        left[k] = False
                if not left[k]:
                    total -= counts[k]
    return 0


@njit(cache=True, nogil=True)
def split_kernel(points: Any, rows: Any, kinds: Any, demands: Any, candidates: int) -> Any:
    """Feature and threshold of the best test for some rows, `CONSISTENT` or `INSEPARABLE`.

    Best leaves the fewest demands stuck below and above together; of equal ones it is the most
    balanced, then the first.

    ``points``: float32 (n, F). ``kinds``: (n,). ``demands``: good, bad and all actions.
    ``candidates``: thresholds between neighbouring values that are tried per feature, evenly
    spread over them.
    """
    every = demands[2]
    number, counts, good, bad = _present(rows, kinds, demands[0], demands[1])
    actions, blocked = np.empty_like(every), np.empty_like(every)
    scratch = (np.empty(len(counts), np.bool_), actions, blocked)
    if stuck_kernel(good, bad, counts, every, scratch) == 0:
        return CONSISTENT, np.float32(0)
    values, below = np.empty(len(rows), np.float32), np.empty_like(counts)
    best_feature, best_threshold = INSEPARABLE, np.float32(0)
    least, balance = -1, 0
    for feature in range(points.shape[1]):
        for i in range(len(rows)):
            values[i] = points[rows[i], feature]
        distinct = np.unique(values)
        gaps = len(distinct) - 1
        for place in range(min(gaps, candidates)):
            at = place
            if gaps > candidates:
                at = (2 * place * (gaps - 1) + candidates - 1) // (2 * (candidates - 1))
            threshold = _between(distinct[at], distinct[at + 1])
            below[:] = 0
            size = 0
            for i in range(len(rows)):
                if values[i] < threshold:
                    below[number[i]] += 1
                    size += 1
            stuck = stuck_kernel(good, bad, below, every, scratch)
            for k in range(len(counts)):
                below[k] = counts[k] - below[k]
            stuck += stuck_kernel(good, bad, below, every, scratch)
            uneven = abs(2 * size - len(rows))
            if least < 0 or stuck < least or (stuck == least and uneven < balance):
                least, balance = stuck, uneven
                best_feature, best_threshold = feature, threshold
    return best_feature, best_threshold


@njit(cache=True, nogil=True)
def _present(rows: Any, kinds: Any, good: Any, bad: Any) -> Any:
    """The kinds of these rows only: each row's number, how many of each, and their sets."""
    numbers = np.full(len(good), -1)
    number = np.empty(len(rows), np.int64)
    found = 0
    for i in range(len(rows)):
        kind = kinds[rows[i]]
        if numbers[kind] < 0:
            numbers[kind] = found
            found += 1
        number[i] = numbers[kind]
    counts = np.zeros(found, np.int64)
    for i in range(len(rows)):
        counts[number[i]] += 1
    own_good = np.empty((found, good.shape[1]), good.dtype)
    own_bad = np.empty((found, good.shape[1]), good.dtype)
    for kind in range(len(good)):
        if numbers[kind] >= 0:
            own_good[numbers[kind]] = good[kind]
            own_bad[numbers[kind]] = bad[kind]
    return number, counts, own_good, own_bad


@njit(cache=True, nogil=True)
def _between(low: Any, high: Any) -> Any:
    """A float32 threshold that tells two neighbouring values apart."""
    middle = np.float32((np.float64(low) + np.float64(high)) / 2)
    return middle if middle > low else high
