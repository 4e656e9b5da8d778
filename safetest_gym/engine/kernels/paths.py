"""Draw random paths of a weighed diagram; the face is `safetest_gym.starts.counting`."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["paths_kernel"]


@njit(cache=True, nogil=True)
def paths_kernel(
    levels: Any,
    nodes: tuple[Any, Any],
    edges: tuple[Any, Any, Any, Any],
    uniforms: Any,
    out: Any,
) -> None:
    """Fill the diagram's columns of every row of ``out``.

    Args:
        levels: int64 (L, 6): column, is it real, where its nodes and its edges begin, and
            which uniform numbers choose the edge and the value (-1: there is no choice).
        nodes: per node and one more per level: first edge, running total of shares.
        edges: low and high (of the dtype of ``out``), target, running total of shares.
        uniforms: in [0, 1), (n, numbers).
    """
    first, begin = nodes
    low, high, target, shares = edges
    for s in range(out.shape[0]):
        node = 0
        for level in range(levels.shape[0]):
            at = levels[level, 2] + node
            offset = levels[level, 3]
            edge = offset + first[at]
            last = offset + first[at + 1] - 1
            if edge < last:
                width = begin[at + 1] - begin[at]
                share = min(int(uniforms[s, levels[level, 4]] * width), width - 1) + begin[at]
                while edge < last:
                    middle = (edge + last) // 2
                    if shares[middle] > share:
                        last = middle
                    else:
                        edge = middle + 1
            column, extent = levels[level, 0], high[edge] - low[edge]
            if extent == 0:
                out[s, column] = low[edge]
            elif levels[level, 1]:
                out[s, column] = min(low[edge] + uniforms[s, levels[level, 5]] * extent, high[edge])
            else:
                out[s, column] = low[edge] + int(uniforms[s, levels[level, 5]] * (extent + 1))
            node = target[edge]
