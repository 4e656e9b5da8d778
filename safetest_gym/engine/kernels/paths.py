"""Draw random paths of a weighed diagram; the face is `safetest_gym.starts.counting`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from safetest_gym.engine.kernels.native import either

__all__ = ["paths_kernel"]

_ROWS = 256
"""Paths drawn side by side, level by level: the processor works on several at once."""


@njit(cache=True, nogil=True)
def paths_kernel(
    levels: Any,
    nodes: tuple[Any, Any],
    edges: tuple[Any, Any, Any, Any],
    uniforms: Any,
    out: Any,
) -> None:
    """Fill the diagram's columns of every row of ``out``.

    Numbers of nodes and edges are unsigned, so that no index is tested for being negative.

    Args:
        levels: uint64 (L, 7): column, is it real, where its nodes and its edges begin,
            which uniform numbers choose the edge and the value, and how often the edges
            of a node are to be halved until one is left.
        nodes: per node and one more per level: first edge (uint64), running total of shares.
        edges: low and high (of the dtype of ``out``), target (uint64), running total of
            shares before the edge.
        uniforms: in [0, 1), (n, numbers).
    """
    first, begin = nodes
    low, high, target, before = edges
    total, one = np.uint64(out.shape[0]), np.uint64(1)
    here = np.empty(min(_ROWS, out.shape[0]), np.uint64)
    for start in range(np.uint64(0), total, np.uint64(_ROWS)):
        rows = min(np.uint64(_ROWS), total - start)
        here[:] = 0
        for level in range(levels.shape[0]):
            column, real = levels[level, 0], levels[level, 1]
            first_node, first_edge = levels[level, 2], levels[level, 3]
            choice, value, halvings = levels[level, 4], levels[level, 5], levels[level, 6]
            for r in range(rows):
                s = start + r
                node = first_node + here[r]
                edge = first_edge + first[node]
                if halvings:
                    left = first[node + one] - first[node]
                    width = begin[node + one] - begin[node]
                    share = min(int(uniforms[s, choice] * width), width - 1) + begin[node]
                    for _ in range(halvings):
                        half = left >> one
                        edge += either(before[edge + half] <= share, half, 0)
                        left -= half
                extent = high[edge] - low[edge]
                if extent == 0:
                    out[s, column] = low[edge]
                elif real:
                    out[s, column] = min(low[edge] + uniforms[s, value] * extent, high[edge])
                else:
                    out[s, column] = low[edge] + int(uniforms[s, value] * (extent + 1))
                here[r] = target[edge]
