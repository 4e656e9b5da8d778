"""With the winning action of every group chosen, least change is a linear program.

Only rows that matter are in it: those near the given point, and what its solutions violate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.first_order import FirstOrder, Rows
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import Basis, Program, Solution, SolverChoice

__all__ = ["Polished", "comparison_program", "polish", "rows_in_play"]

_TOLERANCE = 1e-6
_PROMISING = 0.93
"""A change of one unit pays off from price 1 on; columns below this are left out."""
_WORTH = 1e-3
"""Stop when another round lowers the cost by less than this fraction."""


@dataclass(frozen=True, slots=True, eq=False)
class Polished:
    """The outcome for chosen actions.

    Attributes:
        change: a feasible change (J, A), or None.
        choice: the good action per group that it was computed for.
        conflict: groups that cannot hold together with these choices.
    """

    change: NDArray[np.float64] | None
    choice: NDArray[np.int64]
    conflict: NDArray[np.int64]


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
    search: FirstOrder,
    *,
    necessary: bool = True,
) -> Polished:
    """Solve exactly for the choices that ``search`` arrived at, then improve them.

    Whenever a solution makes another good action of a group the better one, that becomes
    its choice; the solution stays feasible, so the cost only falls.

    Args:
        necessary: a first solution is completed whatever the clock says.
    """
    rows, choice = search.rows, search.choice
    columns, used = _promising(search), rows_in_play(search)
    near = _near(rows.needs(problem, choice, problem.features.scores(search.x)))
    best, cost, settled = None, np.inf, True
    programs = _Programs(problem, solver, rows)
    while (must := best is None and necessary) or not solver.stop.over():
        chosen = np.flatnonzero(used)
        solution, found = programs.solve(chosen, choice, columns, necessary=must)
        if found is None and not columns.all():
            columns = np.ones_like(columns)
            continue
        if found is None and best is None and not (choice == search.choice).all():
            # What won in an incomplete solution need not be able to win together.
            choice, settled = search.choice, False
            continue
        if found is None:
            conflict = np.unique(rows.owner[chosen[solution.conflict]])
            return Polished(best, choice, conflict if best is None else conflict[:0])
        scores = problem.features.scores(found)
        winners = np.where(problem.good, scores, -np.inf).argmax(axis=1)
        needs = rows.needs(problem, winners, scores)
        missing = (needs > _TOLERANCE) & ~used & problem.hard[rows.owner]
        if not missing.any():
            now = problem.cost(found)
            if now < cost:
                best = found
            stays = (winners == choice)[rows.owner[used]].all()
            if stays or now > (1 - _WORTH) * cost:
                break
            cost = now
        if settled or best is not None:
            choice = winners
        used |= needs > -4 * near
    return Polished(best, choice, np.zeros(0, np.int64))


def rows_in_play(search: FirstOrder) -> NDArray[np.bool_]:
    """Comparisons that have a price or are close to their margins."""
    scores = search.problem.features.scores(search.x)
    needs = search.rows.needs(search.problem, search.choice, scores)
    return np.asarray((search.y > 0) | (needs > -_near(needs)), dtype=np.bool_)


def _promising(search: FirstOrder) -> NDArray[np.bool_]:
    """Entries of the change, flat, that the prices nearly justify changing."""
    slope = search.slope(search.y)
    chosen = (np.abs(slope) > _PROMISING) | (search.x != 0)
    return np.asarray((chosen & search.problem.features.allowed).ravel(), dtype=np.bool_)


def _near(needs: NDArray[np.float64]) -> float:
    return 0.02 * float(np.median(np.abs(needs))) if len(needs) else 0.0


class _Programs:
    """Linear programs over comparisons, each begun where the one before ended."""

    def __init__(self, problem: RepairProblem, solver: SolverChoice, rows: Rows) -> None:
        self._problem, self._solver, self._rows = problem, solver, rows
        self._is_begun = False
        self._basic_parts = np.zeros((2, problem.features.allowed.size), np.bool_)
        self._basic_violations = np.zeros(len(problem), np.bool_)
        self._basic_rows = np.ones(len(rows.owner), np.bool_)

    def solve(
        self,
        chosen: NDArray[np.int64],
        choice: NDArray[np.int64],
        allowed: NDArray[np.bool_],
        *,
        necessary: bool,
    ) -> tuple[Solution, NDArray[np.float64] | None]:
        """The least change (J, A), under the chosen rows, of the allowed entries (flat)."""
        problem = self._problem
        owner, bad = self._rows.owner[chosen], self._rows.bad[chosen]
        good = choice[owner]
        index = problem.features.index[owner].astype(np.int64) * problem.num_actions
        touched = np.unique(np.concatenate([index + good[:, None], index + bad[:, None]]))
        columns = touched[allowed[touched] & problem.features.allowed.ravel()[touched]]
        program = comparison_program(problem, owner, good, bad, columns)
        soft = np.unique(owner[~problem.hard[owner]])
        if self._is_begun:
            program = replace(program, basis=self._basis(columns, soft, chosen))
        solution = self._solver.solve(program, necessary=necessary)
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
