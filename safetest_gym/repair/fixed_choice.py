"""With the winning action of every group chosen, least change is a linear program.

Only rows that matter are in it: those near the given point, and what its solutions violate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.first_order import FirstOrder, Rows
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import Basis, Program, Solution, SolverChoice

__all__ = ["Effort", "Polished", "comparison_program", "polish", "rows_in_play"]

_TOLERANCE = 1e-6
_ADDED = 150
"""Rows that are added at a time, those that are missed by most."""
_WORTH = 3e-3
"""Stop when another round lowers the cost by less than this fraction."""
_HOPELESS = 1.5
"""A first solution that costs so many times too much is not completed."""
_LOOSE = 40
"""In so many first rounds comparisons that are far from their margins go again."""
_FURTHER = 6.0
"""After a round the cost falls further by so many times what it has just fallen, at most."""


@dataclass(frozen=True, slots=True)
class Effort:
    """When to give up looking for a better solution.

    Attributes:
        work: for linear programs, see `safetest_gym.repair.solver.Allowance`.
        cutoff: the cost to get below.
    """

    work: float = np.inf
    cutoff: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Polished:
    """The outcome for chosen actions.

    Attributes:
        change: a feasible change (J, A), or None.
        choice: the good action per group that it was computed for.
        conflict: groups that cannot hold together with these choices.
        work: what its linear programs took.
    """

    change: NDArray[np.float64] | None
    choice: NDArray[np.int64]
    conflict: NDArray[np.int64]
    work: float = 0.0


def comparison_program(
    problem: RepairProblem,
    owner: NDArray[np.int64],
    good: NDArray[np.int64],
    bad: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> Program:
    """Rows ``score[good] - score[bad] >= margin`` over the parts of the change's ``columns``.

    Variables: positive parts, negative parts, then one violation per soft group in use.
    """
    features, actions = problem.features, problem.num_actions
    place = np.full(features.allowed.size, -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    index, value = features.index[owner].astype(np.int64), features.value[owner]
    plus = place[index * actions + good[:, None]]
    minus = place[index * actions + bad[:, None]]
    soft = np.unique(owner[~problem.hard[owner]])
    width = len(columns)
    slack = np.full(len(owner), -1)
    if len(soft):
        at = np.minimum(np.searchsorted(soft, owner), len(soft) - 1)
        slack = np.where(problem.hard[owner], -1, 2 * width + at)
    parts = [
        (np.where(plus < 0, -1, plus), value),
        (np.where(plus < 0, -1, plus + width), -value),
        (np.where(minus < 0, -1, minus), -value),
        (np.where(minus < 0, -1, minus + width), value),
        (slack[:, None], np.ones((len(owner), 1))),
    ]
    where = np.concatenate([part[0] for part in parts], axis=1)
    what = np.concatenate([part[1] for part in parts], axis=1)
    used = (where >= 0) & (what != 0)
    base = features.base
    return Program(
        cost=np.concatenate([np.ones(2 * width), problem.weight[soft]]),
        lower=np.zeros(2 * width + len(soft)),
        upper=np.full(2 * width + len(soft), np.inf),
        start=np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32),
        columns=where[used].astype(np.int32),
        values=what[used],
        row_lower=problem.margin[owner] - base[owner, good] + base[owner, bad],
    )


def polish(
    problem: RepairProblem,
    solver: SolverChoice,
    near: NDArray[np.float64],
    winners: NDArray[np.int64] | None = None,
    effort: Effort | None = None,
    first: NDArray[np.bool_] | None = None,
) -> Polished:
    """The least change for some winners, then for those that it leads to, while that helps.

    Comparisons come in where they are missed. The winner of a group is settled then, as the
    action that is best where it has come to. A complete solution stays feasible when all groups
    get the winners that they have there, so from then on the cost only falls.

    Args:
        near: a change (J, A) to begin with.
        winners: a good action per group; by default those that are best at ``near``.
        effort: when to give up; by default a solution is completed whatever the clock says.
        first: comparisons to begin with; by default what is missed, or nearly so.
    """
    completion = _Completion(problem, solver, effort)
    scores = problem.features.scores(near)
    choice = problem.best_good(scores) if winners is None else winners
    needs = completion.rows.needs(problem, choice, scores)
    used = _most(needs, _is_near(needs)) if first is None else first
    used = used | (needs == needs.max(initial=-np.inf))
    best, cost = Polished(None, choice, np.zeros(0, np.int64)), np.inf
    while True:
        is_first = best.change is None
        found = completion.run(choice, used, winners if is_first else None, is_first=is_first)
        if found.change is None:
            best = found if is_first else best
            break
        now = problem.cost(found.change)
        gained = cost - now
        if gained > 0:
            best, cost = found, now
        scores = problem.features.scores(found.change)
        # Groups that have got another winner keep it while others are looked for.
        used = _is_near(completion.rows.needs(problem, found.choice, scores))
        choice = problem.best_good(scores)
        cutoff = np.inf if effort is None else effort.cutoff
        is_done = gained < _WORTH * now or bool((choice == found.choice).all())
        if is_done or now - _FURTHER * gained > cutoff:
            break
    return replace(best, work=completion.programs.work)


class _Completion:
    """Least changes for chosen winners: comparisons come in where they are missed."""

    def __init__(self, problem: RepairProblem, solver: SolverChoice, effort: Effort | None) -> None:
        self._problem, self._solver, self._effort = problem, solver, effort
        self.rows = Rows.of(problem)
        self.programs = _Programs(problem, solver, self.rows)

    def run(
        self,
        choice: NDArray[np.int64],
        used: NDArray[np.bool_],
        winners: NDArray[np.int64] | None,
        *,
        is_first: bool,
    ) -> Polished:
        """The least change for these winners, or what is in its way.

        Args:
            used: comparisons to begin with.
            winners: if none are given, the winner of a group is the one that is best when its
                comparisons come in.
        """
        problem, rows = self._problem, self.rows
        none, settled = np.zeros(0, np.int64), np.full(len(problem), winners is not None)
        reached = 0.0
        for number in count():
            if not self._goes_on(is_first):
                break
            chosen = np.flatnonzero(used)
            necessary = is_first and self._effort is None
            solution, found = self.programs.solve(chosen, choice, necessary=necessary)
            if found is None:
                return Polished(None, choice, np.unique(rows.owner[chosen[solution.conflict]]))
            scores = problem.features.scores(found)
            is_in = np.bincount(rows.owner[chosen], minlength=len(problem)) > 0
            choice = np.where(settled | is_in, choice, problem.best_good(scores))
            needs = rows.needs(problem, choice, scores)
            missed = (needs > _TOLERANCE) & ~used
            if not missed.any():
                return Polished(found, choice, none)
            if self._effort and solution.bound > _HOPELESS * self._effort.cutoff:
                break
            # What goes may come again, and again; in the end everything stays.
            before, reached = reached, float(np.abs(found).sum())
            if number < _LOOSE and reached > before * (1 + _TOLERANCE):
                used = used & _is_near(needs)
            elif number >= _LOOSE:
                settled |= is_in
            used = used | _most(needs, missed)
        return Polished(None, choice, none)

    def _goes_on(self, is_first: bool) -> bool:
        if self._effort is None:
            return is_first or not self._solver.stop.over()
        return self.programs.work < self._effort.work and not self._solver.stop.over()


def _most(needs: NDArray[np.float64], rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Those of the rows that need most, up to a number of them."""
    if rows.sum() <= _ADDED:
        return rows
    chosen = np.zeros_like(rows)
    chosen[np.argsort(np.where(rows, -needs, np.inf), kind="stable")[:_ADDED]] = True
    return chosen


def rows_in_play(search: FirstOrder) -> NDArray[np.bool_]:
    """Comparisons that have a price or are close to their margins."""
    scores = search.problem.features.scores(search.x)
    needs = search.rows.needs(search.problem, search.choice, scores)
    return np.asarray((search.y > 0) | _is_near(needs), dtype=np.bool_)


def _is_near(needs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which comparisons are missed, or nearly so."""
    near = 0.02 * float(np.median(np.abs(needs))) if len(needs) else 0.0
    return np.asarray(needs > -near, dtype=np.bool_)


class _Programs:
    """Linear programs over comparisons, each begun where the one before ended."""

    def __init__(self, problem: RepairProblem, solver: SolverChoice, rows: Rows) -> None:
        self._problem, self._solver, self._rows = problem, solver, rows
        self._is_begun = False
        self.work = 0.0
        self._basic_parts = np.zeros((2, problem.features.allowed.size), np.bool_)
        self._basic_violations = np.zeros(len(problem), np.bool_)
        self._basic_rows = np.ones(len(rows.owner), np.bool_)

    def solve(
        self,
        chosen: NDArray[np.int64],
        choice: NDArray[np.int64],
        *,
        necessary: bool,
    ) -> tuple[Solution, NDArray[np.float64] | None]:
        """The least change (J, A) under the chosen rows."""
        problem = self._problem
        owner, bad = self._rows.owner[chosen], self._rows.bad[chosen]
        good = choice[owner]
        index = problem.features.index[owner].astype(np.int64) * problem.num_actions
        touched = np.unique(np.concatenate([index + good[:, None], index + bad[:, None]]))
        columns = touched[problem.features.allowed.ravel()[touched]]
        program = comparison_program(problem, owner, good, bad, columns)
        soft = np.unique(owner[~problem.hard[owner]])
        if self._is_begun:
            program = replace(program, basis=self._basis(columns, soft, chosen))
        solution = self._solver.solve(program, necessary=necessary)
        self.work += solution.work
        if solution.point is None:
            return solution, None
        width = len(columns)
        if solution.basis is not None:
            self._is_begun = True
            parts = solution.basis.columns
            self._basic_parts[:, columns] = parts[: 2 * width].reshape(2, width)
            self._basic_violations[soft] = parts[2 * width :]
            self._basic_rows[chosen] = solution.basis.rows
        change = np.zeros(problem.features.allowed.shape)
        change.ravel()[columns] = solution.point[:width] - solution.point[width : 2 * width]
        return solution, change

    def _basis(
        self, columns: NDArray[np.int64], soft: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> Basis:
        parts = self._basic_parts[:, columns].ravel()
        return Basis(
            np.concatenate([parts, self._basic_violations[soft]]), self._basic_rows[chosen]
        )
