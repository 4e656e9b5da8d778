"""A change that meets nearly all demands, completed: projections onto one demand after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem

__all__ = ["Completed", "completed"]

_SWEEPS = 2500
_FULL = 10
"""Sweeps of which one looks at all groups, see the kernel."""
_TIRING = 1e-4
"""Of the typical difference of scores; see the kernel."""
_STUCK = 0.8
"""Groups for which the last sweeps, from this part on, still moved something are stuck."""


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """A change (J, A) that meets all hard demands, or groups that got into each other's way.

    Attributes:
        entries: of scores that were computed, about.
    """

    change: NDArray[np.float64] | None
    stuck: NDArray[np.int64]
    entries: int


def completed(problem: RepairProblem, near: NDArray[np.float64]) -> Completed:
    """A change close to ``near`` that meets all hard demands, if projections find one."""
    from safetest_gym.engine.kernels.repair import projections_kernel

    hard = np.flatnonzero(problem.hard)
    part = problem.take(hard)
    features = part.features
    spread = float(np.ptp(features.base, axis=1).mean()) if len(part) else 0.0
    data = (features.index, features.value, features.base, features.allowed)
    change, last = near.copy(), np.full(len(part), -1)
    demands = (*data, part.good, part.bad, part.margin)
    sweeps = projections_kernel(demands, change, last, _TIRING * spread, _SWEEPS)
    entries = (1 + sweeps // _FULL) * features.base.size * features.index.shape[1]
    if sweeps < _SWEEPS:
        return Completed(change, np.zeros(0, np.int64), entries)
    return Completed(None, hard[last >= _STUCK * last.max()], entries)
