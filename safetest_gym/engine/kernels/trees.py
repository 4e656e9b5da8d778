"""Evaluate a tree ensemble for one state: base scores first, then trees in order, float32.

Header words from 8 on: 8 number of trees, 9 offset of the trees int64 (trees, 4): first
node, steps (depth if shallow, else -1), output (-1 for vector leaves), width of the values;
10 offset of the nodes, 16 bytes each: threshold float32, feature int32, left child int32
(the right one follows; numbers count from the first node of all), row of the leaf's values
int32; 11 offset of all values float32; 12 offset of the base scores float32 (K,).
A leaf is its own left child and has threshold infinity, so a shallow tree can be walked a
fixed number of steps, which the processor predicts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cfunc, njit

from safetest_gym.engine.kernels.choose import (
    CHOOSE,
    SCORE,
    best_kernel,
    features_kernel,
    float32_at,
    float32_scratch,
    int32_at,
    int64_at,
)

__all__ = ["leaves_kernel", "trees_choose", "trees_score"]


@njit(nogil=True, error_model="numpy")
def _child_kernel(thresholds: Any, links: Any, place: int, x: Any) -> Any:
    """One step down from the node at ``place`` (four times its number)."""
    right = 0 if x[links[place + 1]] < thresholds[place] else 4
    return 4 * np.int64(links[place + 2]) + right


@njit(nogil=True, error_model="numpy")
def _leaf_kernel(thresholds: Any, links: Any, node: int, steps: int, x: Any) -> int:
    """The leaf that features x reach from ``node``; both views are of the same nodes."""
    place = 4 * node
    if steps >= 0:
        for _ in range(steps):
            place = _child_kernel(thresholds, links, place, x)
    else:
        while 4 * np.int64(links[place + 2]) != place:
            place = _child_kernel(thresholds, links, place, x)
    return place // 4


@njit(nogil=True, error_model="numpy")
def _add_kernel(values: Any, row: int, output: int, outputs: int, scores: Any) -> None:
    """Add a leaf's values, from ``row`` on, to the scores."""
    if output >= 0:
        scores[output] += values[row]
    else:
        for k in range(outputs):
            scores[k] += values[row + k]


@njit(nogil=True, error_model="numpy")
def _margins_kernel(data: int, x: Any, scores: Any) -> None:
    """Fill scores[k] with the ensemble's margins for features x.

    Four trees go down side by side, so that their loads overlap.
    """
    header = int64_at(data)
    outputs, count = header[0], header[8]
    base = float32_at(data + header[12])
    for k in range(outputs):
        scores[k] = base[k]
    trees = int64_at(data + header[9])
    thresholds, links = float32_at(data + header[10]), int32_at(data + header[10])
    values = float32_at(data + header[11])
    t = 0
    while t < count:
        k = 4 * t
        if t + 4 <= count and min(trees[k + 1], trees[k + 5], trees[k + 9], trees[k + 13]) >= 0:
            a, b, c, d = 4 * trees[k], 4 * trees[k + 4], 4 * trees[k + 8], 4 * trees[k + 12]
            for _ in range(max(trees[k + 1], trees[k + 5], trees[k + 9], trees[k + 13])):
                a = _child_kernel(thresholds, links, a, x)
                b = _child_kernel(thresholds, links, b, x)
                c = _child_kernel(thresholds, links, c, x)
                d = _child_kernel(thresholds, links, d, x)
            _add_kernel(values, links[a + 3], trees[k + 2], outputs, scores)
            _add_kernel(values, links[b + 3], trees[k + 6], outputs, scores)
            _add_kernel(values, links[c + 3], trees[k + 10], outputs, scores)
            _add_kernel(values, links[d + 3], trees[k + 14], outputs, scores)
            t += 4
        else:
            leaf = _leaf_kernel(thresholds, links, trees[k], trees[k + 1], x)
            _add_kernel(values, links[4 * leaf + 3], trees[k + 2], outputs, scores)
            t += 1


@cfunc(CHOOSE, cache=True, nopython=True)
def trees_choose(data: int, state: int, applicable: int) -> int:
    """The ``choose`` of `safetest_gym.engine.kernels.choose` for tree ensembles."""
    header = int64_at(data)
    x, scores = float32_scratch(header[1]), float32_scratch(header[0])
    features_kernel(data, state, x)
    _margins_kernel(data, x, scores)
    return best_kernel(data, applicable, scores)


@cfunc(SCORE, cache=True, nopython=True)
def trees_score(data: int, state: int, out: int) -> None:
    """The ``score`` of `safetest_gym.engine.kernels.choose` for tree ensembles."""
    x = float32_scratch(int64_at(data)[1])
    features_kernel(data, state, x)
    _margins_kernel(data, x, float32_at(out))


@njit(cache=True, nogil=True, error_model="numpy")
def leaves_kernel(data: int, states: Any, out: Any) -> None:
    """Fill out[i, t] with the packed node that states[i] reaches in tree t.

    Shapes (n, V) float64 and (n, T) int64, contiguous.
    """
    header = int64_at(data)
    x = float32_scratch(header[1])
    trees = int64_at(data + header[9])
    thresholds, links = float32_at(data + header[10]), int32_at(data + header[10])
    for i in range(out.shape[0]):
        features_kernel(data, states.ctypes.data + i * 8 * states.shape[1], x)
        for t in range(out.shape[1]):
            out[i, t] = _leaf_kernel(thresholds, links, trees[4 * t], trees[4 * t + 1], x)
