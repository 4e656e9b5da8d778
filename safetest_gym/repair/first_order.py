"""Nearly least changes for many demands: primal-dual steps, alternatives chosen on the way.

Each demand is met by its currently best good action, so the constraints move with the point;
restarts from averages make the steps converge once the choices settle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.stop import HardStop

__all__ = ["FirstOrder", "Rows"]

_PERIOD = 40
"""Steps between two looks at choices and progress."""
_KEPT_NEAR = 0.3
"""Rows whose slack is below this fraction of the typical need stay active."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """All comparisons (group, bad action) of a problem; shapes (R,)."""

    owner: NDArray[np.int64]
    bad: NDArray[np.int64]
    cap: NDArray[np.float64]
    size: NDArray[np.float64]

    @classmethod
    def of(cls, problem: RepairProblem) -> Rows:
        owner, bad = np.nonzero(problem.bad)
        size = 2 * np.abs(problem.features.value).sum(axis=1)[owner]
        return cls(owner, bad, problem.weight[owner], size)

    def needs(
        self, problem: RepairProblem, choice: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """By how much each row misses its margin at ``scores`` when these actions shall win."""
        best = scores[np.arange(len(scores)), choice]
        needs = problem.margin[self.owner] - best[self.owner] + scores[self.owner, self.bad]
        return np.asarray(needs, dtype=np.float64)


class FirstOrder:
    """One search; `run` can be called again to go on.

    Args:
        near: the change (J, A) to begin with; it decides which good actions come first.
        prices: of every row, to begin with.

    Attributes:
        x: the change, shape (J, A).
        y: price of every row.
        choice: the good action by which each group is to be met.
        entries: of the comparisons and scores that have been computed.
    """

    def __init__(
        self,
        problem: RepairProblem,
        near: NDArray[np.float64] | None = None,
        prices: NDArray[np.float64] | None = None,
    ) -> None:
        self.problem = problem
        self.rows = Rows.of(problem)
        shape = problem.features.allowed.shape
        self.x = np.zeros(shape) if near is None else near.copy()
        self.y = np.zeros(len(self.rows.owner)) if prices is None else prices.copy()
        self._scores = problem.features.scores(self.x)
        self._others = np.empty_like(self._scores)
        self.choice = problem.best_good(self._scores)
        self._needs = self.rows.needs(problem, self.choice, problem.features.base)
        violated = self._needs > 0
        self._typical = float(self._needs[violated].mean()) if violated.any() else 1.0
        self._weight = 1.0 / self._typical
        self._sums = np.zeros_like(self.x), np.zeros_like(self.y)
        self._since, self._reference = 0, np.inf
        self.settled = False
        self.entries = 0

    @property
    def prices(self) -> NDArray[np.float64]:
        """What the demands of every group cost, shape (G,)."""
        sums = np.bincount(self.rows.owner, self.y, len(self.problem))
        return np.asarray(sums, dtype=np.float64)

    def slope(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """What one unit of change earns at prices y, shape (J, A)."""
        from safetest_gym.engine.kernels.repair import dual_slope_kernel

        features, rows = self.problem.features, self.rows
        slope = np.empty_like(self.x)
        good = self.choice[rows.owner]
        dual_slope_kernel(features.index, features.value, rows.owner, good, rows.bad, y, slope)
        return slope

    def run(self, steps: int, stop: HardStop, tolerance: float = 1e-3) -> None:
        """Go on for a number of steps, until converged or stopped."""
        sums = self._sums
        for _ in range(0, steps, _PERIOD):
            if stop.over():
                return
            moved = self._advance(sums)
            self._since += _PERIOD
            average = sums[0] / self._since, sums[1] / self._since
            error = self._error(self.x, self.y, self._scores)
            averaged = self._error(*average, self._others)
            if not moved and min(error, averaged) < tolerance:
                if averaged < error:
                    self._place(*average)
                self.settled = True
                return
            better = min(error, averaged)
            if better < 0.4 * self._reference or self._since >= 12 * _PERIOD:
                if averaged < error:
                    self._place(*average)
                sums[0][:], sums[1][:] = 0.0, 0.0
                self._since, self._reference = 0, better

    def _place(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Go to where the other scores were computed."""
        self.x[:], self.y[:] = x, y
        self._scores, self._others = self._others, self._scores

    def _advance(self, sums: tuple[NDArray[np.float64], NDArray[np.float64]]) -> bool:
        """One period on the active rows; did a choice change?"""
        from safetest_gym.engine.kernels.repair import primal_dual_kernel

        problem, rows, features = self.problem, self.rows, self.problem.features
        best = problem.best_good(self._scores)
        moved = bool((best != self.choice).any())
        self.choice = best
        self._needs = rows.needs(problem, best, features.base)
        needs = rows.needs(problem, best, self._scores)
        active = np.flatnonzero((needs > -_KEPT_NEAR * self._typical) | (self.y > 0))
        owner, bad = rows.owner[active], rows.bad[active]
        good = best[owner]
        primal, dual = self._steps(owner, good, bad), self._weight / rows.size[active]
        y, y_sum = self.y[active], sums[1][active]
        need, cap = self._needs[active], rows.cap[active]
        data = (features.index, features.value, owner, good, bad, need, cap)
        primal_dual_kernel(
            data, (primal, dual), (self.x, y), (sums[0], y_sum), np.empty_like(self.x), _PERIOD
        )
        self.y[active], sums[1][active] = y, y_sum
        both = 4 * len(active) * features.index.shape[1]
        self.entries += _PERIOD * (both + self.x.size)
        return moved

    def _steps(
        self, owner: NDArray[np.int64], good: NDArray[np.int64], bad: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Diagonal step sizes of Pock and Chambolle; 0 where nothing may or need change."""
        from safetest_gym.engine.kernels.repair import column_mass_kernel

        features = self.problem.features
        mass = np.zeros_like(self.x)
        column_mass_kernel(features.index, features.value, owner, good, bad, mass)
        usable = features.allowed & (mass > 0)
        return np.divide(1.0 / self._weight, mass, out=np.zeros_like(mass), where=usable)

    def _error(
        self, x: NDArray[np.float64], y: NDArray[np.float64], scores: NDArray[np.float64]
    ) -> float:
        """How far from optimal for the present choices: violation, prices, and gap.

        Args:
            scores: filled with those of x.
        """
        from safetest_gym.engine.kernels.repair import scores_kernel

        problem, rows, features = self.problem, self.rows, self.problem.features
        scores_kernel(features.index, features.value, features.base, x, scores)
        hard = np.isinf(rows.cap)
        self.entries += scores.size * features.index.shape[1]
        missed = np.maximum(rows.needs(problem, self.choice, scores), 0)
        priced = np.maximum(np.abs(self.slope(y)[features.allowed]) - 1, 0).max(initial=0.0)
        soft = missed[~hard] * rows.cap[~hard]
        cost = np.abs(x).sum() + soft.sum()
        gap = abs(cost - (self._needs * y).sum()) / (1e-9 + abs(cost))
        violation = missed[hard].max(initial=0.0) / self._typical
        return float(max(violation, priced, gap))
