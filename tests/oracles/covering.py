"""Covering programs, said plainly: of all corners, the cheapest one that meets the rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_cost"]


def least_cost(rows: NDArray[np.float64], needs: NDArray[np.float64]) -> float:
    """The least ``sum(x)`` with ``rows @ x >= needs`` and ``x >= 0``; infinite if there is none.

    The cost is bounded from below, so that a corner is among the cheapest points: a point where
    as many of the inequalities as there are variables hold with nothing to spare.
    """
    n = rows.shape[1]
    sides = np.concatenate([rows, np.eye(n)])
    least = np.concatenate([needs, np.zeros(n)])
    best = np.inf
    for tight in combinations(range(len(sides)), n):
        corner = sides[list(tight)]
        if abs(np.linalg.det(corner)) > 1e-9:
            point = np.linalg.solve(corner, least[list(tight)])
            if (sides @ point >= least - 1e-9).all():
                best = min(best, float(point.sum()))
    return best
