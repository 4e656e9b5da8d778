"""The best test for a node of a separating tree, said plainly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.ranking import Demand, contradicting

__all__ = ["best_split"]


def best_split(
    points: NDArray[np.float32], demands: Sequence[Demand], actions: int, candidates: int
) -> tuple[int, np.float32] | None:
    """Feature and threshold that leave the fewest demands in contradictions; None if none is.

    Of equal tests it is the most balanced, then the first.
    """
    if not _stuck(demands, actions):
        return None
    tests: list[tuple[int, int, int, int, np.float32]] = []
    for feature, column in enumerate(points.T):
        for threshold in _thresholds(column, candidates):
            below = column < threshold
            sides = [[d for d, b in zip(demands, below, strict=True) if b == s] for s in (0, 1)]
            stuck = sum(_stuck(side, actions) for side in sides)
            uneven = abs(len(sides[0]) - len(sides[1]))
            tests.append((stuck, uneven, len(tests), feature, threshold))
    _, _, _, feature, threshold = min(tests)
    return feature, threshold


def _stuck(demands: Sequence[Demand], actions: int) -> int:
    wrong = contradicting(demands, actions)
    return sum(demand in wrong for demand in demands)


def _thresholds(values: NDArray[np.float32], candidates: int) -> list[np.float32]:
    """Between neighbouring values, evenly spread if there are many."""
    distinct = np.unique(values)
    places = np.arange(len(distinct) - 1)
    if len(places) > candidates:
        places = np.linspace(0, len(places) - 1, candidates).round().astype(np.int64)
    return [_between(distinct[i], distinct[i + 1]) for i in places]


def _between(low: np.float32, high: np.float32) -> np.float32:
    middle = np.float32((np.float64(low) + np.float64(high)) / 2)
    return middle if middle > low else high
