"""A lower bound on the size of any change that meets the demands.

Every group gives one cut over the positive and negative parts of the change: whichever of
its good actions wins, the largest of the alternatives' coefficients is valid. Prices that
are feasible for the cuts, found by primal-dual steps and scaled, prove the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem

__all__ = ["lower_bound"]

_LOOK = 50
_CLOSE = 2e-3


def lower_bound(problem: RepairProblem, groups: NDArray[np.int64], steps: int = 1500) -> float:
    """A bound from the cuts of these hard groups; more groups, tighter and slower."""
    cuts = _cuts(problem.take(groups[problem.hard[groups]]))
    if not cuts.shape[0]:
        return 0.0
    return _covering_bound(cuts, steps)


def _cuts(problem: RepairProblem) -> Any:
    """The cuts ``C parts >= 1`` of the groups that do not hold before the repair."""
    from scipy.sparse import csr_matrix

    features, count = problem.features, len(problem)
    rows = np.arange(count)
    worst = np.where(problem.bad, features.base, -np.inf).argmax(axis=1)
    needs = problem.margin[:, None] - features.base + features.base[rows, worst][:, None]
    needs = np.where(problem.good, needs, np.inf)
    open_ = problem.bad.any(axis=1) & problem.good.any(axis=1) & (needs.min(axis=1) > 0)
    least = needs.min(axis=1)
    most = np.where(problem.good, needs, -np.inf).max(axis=1)
    several = problem.good.sum(axis=1) > 1
    size = features.allowed.size
    entries: list[tuple[Any, Any, Any]] = []
    for a in range(problem.num_actions):
        for group, weight in (
            (np.flatnonzero(open_ & problem.good[:, a]), 1.0 / needs[:, a]),
            (np.flatnonzero(open_ & (worst == a)), None),
        ):
            value, index = features.value[group], features.index[group].astype(np.int64)
            value = value * features.allowed[index, a]
            if weight is not None:
                up, down = value * weight[group, None], -value * weight[group, None]
                many = several[group, None]
                up, down = (
                    np.where(many, np.maximum(up, 0), up),
                    np.where(many, np.maximum(down, 0), down),
                )
            else:
                near, far = 1 / least[group, None], 1 / most[group, None]
                up = np.maximum(-value * near, -value * far)
                down = np.maximum(value * near, value * far)
            column = index * problem.num_actions + a
            owner = np.repeat(group[:, None], index.shape[1], axis=1)
            entries += [(owner, column, up), (owner, column + size, down)]
    owners, columns, values = (np.concatenate([e[i].ravel() for e in entries]) for i in range(3))
    matrix = csr_matrix((values, (owners, columns)), shape=(count, 2 * size))[open_]
    matrix.eliminate_zeros()
    touched = np.unique(matrix.indices)
    return matrix[:, touched]


def _covering_bound(cuts: Any, steps: int) -> float:
    """Lower bound of ``min sum(x), C x >= 1, x >= 0`` by restarted primal-dual steps."""
    transposed = cuts.T.tocsr()
    size = abs(cuts)
    tau = 1.0 / np.maximum(np.asarray(size.sum(axis=0)).ravel(), 1e-12)
    sigma = 1.0 / np.maximum(np.asarray(size.sum(axis=1)).ravel(), 1e-12)
    x, y = np.zeros(cuts.shape[1]), np.zeros(cuts.shape[0])
    sums, since, best, weight = [np.zeros_like(x), np.zeros_like(y)], 0, 0.0, 1.0
    for step in range(1, steps + 1):
        moved = np.maximum(x - tau / weight * (1.0 - transposed @ y), 0)
        y = np.maximum(y + weight * sigma * (1.0 - cuts @ (2 * moved - x)), 0)
        x = moved
        sums[0] += x
        sums[1] += y
        since += 1
        if step % _LOOK == 0:
            average = [part / since for part in sums]
            found = max(_proved(transposed, y), _proved(transposed, average[1]))
            best = max(best, found)
            if since >= 4 * _LOOK:
                x, y = average
                sums, since = [np.zeros_like(x), np.zeros_like(y)], 0
                if x.sum() - best <= _CLOSE * x.sum() and (cuts @ x).min() > 1 - _CLOSE:
                    break
    return best


def _proved(transposed: Any, y: NDArray[np.float64]) -> float:
    """What prices prove once they are scaled to be feasible."""
    worst = float((transposed @ y).max(initial=0.0))
    return float(y.sum() / max(worst, 1e-12)) if worst > 0 else 0.0
