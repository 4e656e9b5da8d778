"""A lower bound that looks at several demands together: who wins is branched over.

The relaxation lets a group be won by parts of several actions. Where it misses by most, there
is one branch for each good action, in which that action has to win. Every change is in one of
the branches, so the least of their bounds holds.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.bound import ROUNDING, Relaxed, disjunctive_cuts, tightened
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import Basis, Program, Solution, SolverChoice

__all__ = ["branched"]

_LEAST = 20
"""Fewer linear programs than these are not worth beginning with."""
_WON = 1e-6
"""A group that misses its margin by less than this fraction of it is won."""

_Winners = tuple[tuple[int, int], ...]
"""Pairs of group and the action that has to win it."""
_Branch = tuple[float, int, _Winners, Solution]
"""Its bound, its number, who has to win, and the least parts with which they do."""


def branched(
    problem: RepairProblem, relaxation: Relaxed, cost: float, effort: int, solver: SolverChoice
) -> float:
    """A bound on the cost of every change; at most ``cost``, that of a known one.

    Args:
        effort: about how many entries all its linear programs may have together.
    """
    if not len(relaxation.binding):
        return min(relaxation.bound, cost)
    tight = tightened(problem, relaxation, solver)
    entries = disjunctive_cuts(problem.take(tight.binding)).nnz
    if entries * _LEAST > effort or tight.bound >= cost:
        return min(tight.bound, cost)
    tree = _Tree(problem.take(tight.binding), solver)
    return min(max(tight.bound, tree.bound(cost, effort)), cost)


class _Tree:
    """Branches over the winners of some groups; all of them hard and open.

    Variables of its programs are the positive and the negative parts of the entries that
    matter to these groups.
    """

    def __init__(self, problem: RepairProblem, solver: SolverChoice) -> None:
        self._problem, self._solver = problem, solver
        actions = problem.num_actions
        matters = (problem.good | problem.bad)[:, None, :]
        entries = problem.features.index.astype(np.int64)[:, :, None] * actions + np.arange(actions)
        self._entries = np.unique(entries[np.broadcast_to(matters, entries.shape)])
        self._place = np.full(problem.features.allowed.size, -1)
        self._place[self._entries] = np.arange(len(self._entries))
        size = problem.features.allowed.size
        cuts = disjunctive_cuts(problem)
        self._cuts = cuts[:, np.concatenate([self._entries, self._entries + size])].tocsr()

    def bound(self, cost: float, effort: int) -> float:
        """The least bound of all branches; 0 if there is no time or no licence for any."""
        root = self._solved((), None)
        if root is None or root.status != "optimal":
            return 0.0
        order = count()
        branches: list[_Branch] = [(root.bound, next(order), (), root)]
        while branches and effort > 0:
            bound, _, winners, solution = branches[0]
            group = self._split(winners, solution)
            if bound >= cost or group is None:
                break
            children: list[_Branch] = []
            for action in np.flatnonzero(self._problem.good[group]).tolist():
                chosen = (*winners, (group, action))
                child = self._solved(chosen, solution.basis)
                if child is None or child.status not in ("optimal", "infeasible"):
                    return float(bound) * (1 - ROUNDING)
                effort -= self._cuts.nnz
                if child.status == "optimal" and child.bound < cost:
                    children.append((max(child.bound, bound), next(order), chosen, child))
            heapq.heappop(branches)
            for branch in children:
                heapq.heappush(branches, branch)
        return float(branches[0][0]) * (1 - ROUNDING) if branches else cost

    def _solved(self, winners: _Winners, basis: Basis | None) -> Solution | None:
        program = self._program(winners, basis)
        if self._solver.stop.over() or not self._solver.allows(program):
            return None
        return self._solver.solve(program)

    def _split(self, winners: _Winners, solution: Solution) -> int | None:
        """The group that misses its margin by most, of those whose winner is open."""
        assert solution.point is not None
        problem, width = self._problem, len(self._entries)
        change = np.zeros(problem.features.allowed.shape)
        change.ravel()[self._entries] = solution.point[:width] - solution.point[width:]
        missed = problem.shortfall(change) / problem.margin
        missed[[group for group, _ in winners]] = 0
        group = int(missed.argmax())
        return group if missed[group] > _WON else None

    def _program(self, winners: _Winners, basis: Basis | None) -> Program:
        """The least parts that meet all cuts and let these actions win."""
        rows = [self._row(group, action, bad) for group, action, bad in self._duels(winners)]
        cuts, width = self._cuts, len(self._entries)
        sizes = np.array([len(row[0]) for row in rows], dtype=np.int64)
        known = cuts.shape[0] + len(rows)
        if basis is not None:
            more = np.ones(known - len(basis.rows), dtype=np.bool_)
            basis = Basis(basis.columns, np.concatenate([basis.rows, more]))
        return Program(
            cost=np.ones(2 * width),
            lower=np.zeros(2 * width),
            upper=np.full(2 * width, np.inf),
            start=np.concatenate([cuts.indptr, cuts.indptr[-1] + sizes.cumsum()]).astype(np.int32),
            columns=np.concatenate([cuts.indices, *(row[0] for row in rows)]).astype(np.int32),
            values=np.concatenate([cuts.data, *(row[1] for row in rows)]),
            row_lower=np.concatenate([np.ones(cuts.shape[0]), [row[2] for row in rows]]),
            basis=basis,
        )

    def _duels(self, winners: _Winners) -> list[tuple[int, int, int]]:
        return [
            (group, action, bad)
            for group, action in winners
            for bad in np.flatnonzero(self._problem.bad[group]).tolist()
        ]

    def _row(
        self, group: int, good: int, bad: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """What it takes for one action to beat another: columns, values and the need."""
        problem, width = self._problem, len(self._entries)
        features = problem.features
        index, value = features.index[group].astype(np.int64), features.value[group]
        entry = np.concatenate([index * problem.num_actions + a for a in (good, bad)])
        weight = np.concatenate([value, -value]) * features.allowed.ravel()[entry]
        need = problem.margin[group] - features.base[group, good] + features.base[group, bad]
        place = self._place[entry]
        return np.concatenate([place, place + width]), np.concatenate([weight, -weight]), need
