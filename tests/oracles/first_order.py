"""Primal-dual steps, said plainly: with the comparisons as rows of one dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import Features

__all__ = ["comparisons", "primal_dual"]


def comparisons(features: Features, rows: tuple[Any, Any, Any]) -> NDArray[np.float64]:
    """Row r: how ``score[good[r]] - score[bad[r]]`` of state ``owner[r]`` depends on the change."""
    jumps, actions = features.allowed.shape
    matrix = np.zeros((len(rows[0]), jumps, actions))
    for row, (owner, good, bad) in enumerate(zip(*rows, strict=True)):
        for j, value in zip(features.index[owner], features.value[owner], strict=True):
            matrix[row, j, good] += value
            matrix[row, j, bad] -= value
    return matrix.reshape(len(matrix), -1)


def primal_dual(
    matrix: NDArray[np.float64],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
    steps: tuple[NDArray[np.float64], NDArray[np.float64]],
    point: tuple[NDArray[np.float64], NDArray[np.float64]],
    iterations: int,
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """All points (x, y) on the way to ``min |x|`` under ``matrix @ x >= need``, flat.

    Args:
        bounds: ``need``, and the most that each row's price may be.
        steps: sizes for x, 0 where it must stay as it is, and for y.
    """
    (need, cap), (primal, dual) = bounds, steps
    found = [point]
    for _ in range(iterations):
        x, y = found[-1]
        moved = x + primal * (matrix.T @ y)
        new = np.sign(moved) * np.maximum(np.abs(moved) - primal, 0)
        new = np.where(primal > 0, new, x)
        missing = need - matrix @ (2 * new - x)
        found.append((new, np.clip(y + dual * missing, 0, cap)))
    return found[1:]
