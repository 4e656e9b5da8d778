"""Better solutions of a repair from other starts: the scores of whole actions are shifted.

Which actions are raised nearly everywhere and which are lowered decides much of what a repair
costs, and neither first-order steps nor exchanges of winners change it. So steps begin again
from the best solution, or half of it, with random shifts. They look at the groups that have
mattered so far; what the others miss comes in. Two such searches run beside each other, and
then two from the better end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.covering import UNIT
from safetest_gym.repair.first_order import FirstOrder
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.projections import completed
from safetest_gym.repair.stop import HardStop

__all__ = ["restarted", "settled", "winning"]

_ROUNDS, _SEARCHES = 2, 2
"""Each round begins with the best solution, and has one search on each of two processors."""
_SEED = 50
"""Of the first search; the others have the next ones."""
_PARTS = ((0.5, 0.5), (1.0, 0.3))
"""How much of the best solution a start keeps, and the spread of the shifts that it adds, in
what an open group lacks on average."""
_STARTS, _FAILURES = 8, 3
"""Of one search, at most, and of these in a row that lead to no solution."""
_STEPS, _MORE, _SETTLING, _LAST = 600, 300, 800, 4000
"""First-order steps to other winners, after more groups came in, with their winners, and at
last with those of the best solution."""
_NEAREST, _ADDED, _MOST = 2000, 500, 6000
"""Groups to begin with, those that come in at a time, and how many are too many."""
_FAR, _NEAR = 1.1, 1.05
"""A start is given up that leads to so many times the best cost, before and after completion."""
_PER_ENTRY = 3
"""What an entry takes in first-order steps, in entries of a tableau."""


def restarted(
    problem: RepairProblem,
    best: NDArray[np.float64],
    enough: float,
    work: float,
    stop: HardStop,
) -> NDArray[np.float64]:
    """The best solution that is found from a known one, both changes (J, A).

    Args:
        enough: the cost to stop at.
        work: of all searches together, see `safetest_gym.repair.solver.Allowance`.
    """
    limits = enough, work / _SEARCHES / _ROUNDS * UNIT
    with ThreadPoolExecutor(_SEARCHES) as pool:
        for number in range(_ROUNDS):
            if problem.cost(best) <= enough or stop.over():
                break
            seeds = range(_SEARCHES * number, _SEARCHES * (number + 1))
            found = pool.map(partial(_searched, problem, best, limits, stop), seeds)
            best = min([best, *found], key=problem.cost)
    return best


def settled(
    problem: RepairProblem, best: NDArray[np.float64], stop: HardStop
) -> NDArray[np.float64]:
    """The best solution that is found with the same winners, a change (J, A)."""
    return best if stop.over() else _Search(problem, best, (0.0, 0.0), stop, 0).settled(best, _LAST)


def winning(problem: RepairProblem, best: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The best good action of every group alone, shape (G, A)."""
    winning = np.zeros_like(problem.good)
    winning[np.arange(len(problem)), problem.best_good(problem.features.scores(best))] = True
    return winning & problem.good


def _searched(
    problem: RepairProblem,
    best: NDArray[np.float64],
    limits: tuple[float, float],
    stop: HardStop,
    seed: int,
) -> NDArray[np.float64]:
    return _Search(problem, best, limits, stop, seed).run()


class _Search:
    """Starts, one after another.

    Args:
        limits: the cost to stop at, and effort.
    """

    def __init__(
        self,
        problem: RepairProblem,
        best: NDArray[np.float64],
        limits: tuple[float, float],
        stop: HardStop,
        seed: int,
    ) -> None:
        self._problem, self._stop = problem, stop
        self._enough, self._effort = limits
        self._rng = np.random.default_rng(_SEED + seed)
        self._best, self._cost = best, problem.cost(best)
        short = problem.shortfall(np.zeros_like(best))
        lacking = np.maximum(short, 0).sum() / max((short > 0).sum(), 1)
        values = np.abs(problem.features.value).sum(axis=1).mean()
        self._shift = float(lacking / max(values, 1e-12))
        self._spent = 0.0
        self._narrow()

    def run(self) -> NDArray[np.float64]:
        """The best solution, a change (J, A)."""
        failures = 0
        for _ in range(_STARTS):
            if failures == _FAILURES or not self._goes_on():
                break
            found = self._tried(self._start())
            failures = failures + 1 if found is None else 0
            self._consider(found)
            if len(self._groups) > _MOST:
                self._narrow()
        return self._best

    def _goes_on(self) -> bool:
        enough = self._cost <= self._enough
        return self._spent < self._effort and not enough and not self._stop.over()

    def _consider(self, found: NDArray[np.float64] | None) -> None:
        if found is not None and self._problem.cost(found) < self._cost:
            self._best, self._cost = found, self._problem.cost(found)

    def _narrow(self) -> None:
        """Look at the groups that the best solution meets most narrowly."""
        short = -self._problem.shortfall(self._best)
        self._look_at(np.argsort(short, kind="stable")[:_NEAREST])

    def _look_at(self, groups: NDArray[np.int64]) -> None:
        self._groups = np.sort(groups)
        self._part = self._problem.take(self._groups)

    def _start(self) -> NDArray[np.float64]:
        kept, added = _PARTS[self._rng.integers(len(_PARTS))]
        shift = self._rng.normal(0, added * self._shift, self._problem.num_actions)
        return (kept * self._best + shift) * self._problem.features.allowed

    def _tried(self, start: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Where a start leads to; None if that is dear, or meets too little."""
        problem = self._problem
        search = self._stepped(self._part, start, _STEPS)
        missed = problem.shortfall(search.x)
        missed[self._groups] = 0
        most = np.argsort(-missed, kind="stable")[:_ADDED]
        most = most[missed[most] > 0]
        if len(most):
            self._look_at(np.union1d(self._groups, most))
            search = self._stepped(self._part, search.x, _MORE)
        if np.abs(search.x).sum() > _FAR * self._cost:
            return None
        found = self._completed(problem, search.x)
        if found is None or problem.cost(found) > _NEAR * self._cost:
            return found
        return self.settled(found, _SETTLING, search.y)

    def settled(
        self, found: NDArray[np.float64], steps: int, prices: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """A solution with the same winners, the cheaper one."""
        part = replace(self._part, good=winning(self._part, found))
        whole = replace(self._problem, good=winning(self._problem, found))
        closer = self._completed(whole, self._stepped(part, found, steps, prices).x)
        return found if closer is None else min(found, closer, key=self._problem.cost)

    def _stepped(
        self,
        problem: RepairProblem,
        start: NDArray[np.float64],
        steps: int,
        prices: NDArray[np.float64] | None = None,
    ) -> FirstOrder:
        search = FirstOrder(problem, start, prices)
        search.run(steps, self._stop)
        self._spent += _PER_ENTRY * search.entries
        return search

    def _completed(
        self, problem: RepairProblem, near: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        found = completed(problem, near)
        self._spent += _PER_ENTRY * found.entries
        return found.change
