"""A lower bound on the size of any change that meets the demands.

Cuts are inequalities over the positive and negative parts of the change that hold whichever
good action wins a group. The least sum of parts that meets the cuts is the bound.

Action a wins against the worst bad action b if ``d[a] - d[b] >= need[a]``, with d the changes
of their scores. Multiplied by any weights ``w[a] >= 1 / need[a]``, the largest coefficients of
all good actions are a cut. Weights ``max(1 / need[a], far)`` for some ``far`` are the best
ones: with a larger ``far`` good actions count for more, but so do the parts that raise b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import Features, RepairProblem
from safetest_gym.repair.solver import Basis, Program, Solution, SolverChoice

__all__ = ["ROUNDING", "Relaxed", "disjunctive_cuts", "relaxed", "weakest_cuts"]

ROUNDING = 1e-6
"""Solvers are exact to about this fraction."""
_MISSED = 5e-3
"""A cut that a point misses by less than this fraction need not be added."""
_ADDED = 300
"""Cuts that are added at a time, those that are missed by most."""
_WORTH = 0.005
"""Stop when another round raises the bound by less than this fraction."""
_LOOK = 50
_CLOSE = 2e-3


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """What the cuts alone demand.

    Attributes:
        bound: no change that meets the demands costs less.
        change: shape (J, A), the change that meets the cuts at that cost, or nearly so.
        groups, far: the cuts that decide, shapes (C,), where that is known.
    """

    bound: float
    change: NDArray[np.float64]
    groups: NDArray[np.int64]
    far: NDArray[np.float64]


def relaxed(
    problem: RepairProblem, prices: NDArray[np.float64], solver: SolverChoice, work: float
) -> Relaxed:
    """A bound from cuts of hard groups: those with the highest prices (G,), then what is missed.

    Their linear program is solved if the solver's licence and the clock allow it, otherwise
    nearly solved by primal-dual steps on the priced groups.

    Args:
        work: no cuts are added after so much, see `safetest_gym.repair.solver.Allowance`.
    """
    hard = np.flatnonzero(problem.hard)
    hard = hard[_Needs.of(problem.take(hard)).open]
    part = problem.take(hard)
    programs = _Programs(problem, solver)
    best: Relaxed | None = None
    more = np.sort(np.argsort(-prices[hard], kind="stable")[:_ADDED])
    far = _Needs.of(part).most
    while len(more) and programs.work < work:
        found = programs.solve(hard[more], far[more])
        if found is None:
            break
        gained = np.inf if best is None else found.bound / max(best.bound, 1e-12) - 1
        best = found
        if 0 <= gained < _WORTH:
            break
        value, far = weakest_cuts(part, programs.parts)
        most = np.argsort(value, kind="stable")[:_ADDED]
        more = most[value[most] < 1 - _MISSED]
    if best is not None:
        return best
    cuts = disjunctive_cuts(problem.take(hard[prices[hard] > 0]))
    columns = np.unique(cuts.indices)
    bound, parts = _covering_bound(cuts[:, columns])
    both = np.zeros(2 * problem.features.allowed.size)
    both[columns] = parts
    return Relaxed(bound, _change(problem, both), np.zeros(0, np.int64), np.zeros(0))


class _Programs:
    """Linear programs over more and more cuts, each begun where the one before ended."""

    def __init__(self, problem: RepairProblem, solver: SolverChoice) -> None:
        from scipy.sparse import csr_matrix

        width = 2 * problem.features.allowed.size
        self.parts = np.zeros(width)
        self._problem, self._solver = problem, solver
        self._cuts: Any = csr_matrix((0, width))
        self._groups, self._far = np.zeros(0, np.int64), np.zeros(0)
        self._basic_parts = np.zeros(width, np.bool_)
        self._basic_rows: NDArray[np.bool_] | None = None
        self.work = 0.0

    def solve(self, groups: NDArray[np.int64], far: NDArray[np.float64]) -> Relaxed | None:
        """The relaxation with these cuts added; None without a licence or time for it."""
        from scipy.sparse import vstack

        more = disjunctive_cuts(self._problem.take(groups), far)
        self._cuts = vstack([self._cuts, more], format="csr")
        self._groups = np.concatenate([self._groups, groups])
        self._far = np.concatenate([self._far, far])
        columns = np.unique(self._cuts.indices)
        basis = None
        if self._basic_rows is not None:
            rows = np.ones(len(self._groups), np.bool_)
            rows[: len(self._basic_rows)] = self._basic_rows
            basis = Basis(self._basic_parts[columns], rows)
        program = _covering_program(self._cuts[:, columns], basis)
        if not self._solver.allows(program) or self._solver.stop.over():
            return None
        solution = self._solver.solve(program)
        self.work += solution.work
        if solution.status != "optimal" or solution.point is None:
            return None
        self.parts[:] = 0.0
        self.parts[columns] = solution.point
        deciding = self._deciding(solution, columns)
        return Relaxed(
            float(solution.bound * (1 - ROUNDING)),
            _change(self._problem, self.parts),
            self._groups[deciding],
            self._far[deciding],
        )

    def _deciding(self, solution: Solution, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Cuts that alone give the bound, or if that is not known, that are met with equality."""
        if solution.basis is None:
            tight: NDArray[np.bool_] = self._cuts @ self.parts < 1 + ROUNDING
            return tight
        self._basic_parts[columns] = solution.basis.columns
        self._basic_rows = solution.basis.rows
        return ~solution.basis.rows


def _change(problem: RepairProblem, parts: NDArray[np.float64]) -> NDArray[np.float64]:
    up, down = parts.reshape(2, *problem.features.allowed.shape)
    return np.asarray(up - down, dtype=np.float64)


def _covering_program(cuts: Any, basis: Basis | None) -> Program:
    """``min sum(x), C x >= 1, x >= 0``."""
    used = cuts.tocsr()
    width = used.shape[1]
    return Program(
        cost=np.ones(width),
        lower=np.zeros(width),
        upper=np.full(width, np.inf),
        start=used.indptr.astype(np.int32),
        columns=used.indices.astype(np.int32),
        values=used.data,
        row_lower=np.ones(used.shape[0]),
        basis=basis,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Needs:
    """What groups need; shapes (G,) or (G, A).

    Attributes:
        worst: the bad action with the highest score.
        weights: of good actions that beat it, 1 over what they lack; 0 of others.
        open: does the group not hold before the repair?
    """

    worst: NDArray[np.int64]
    weights: NDArray[np.float64]
    open: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: RepairProblem) -> _Needs:
        base = problem.features.base
        worst = np.where(problem.bad, base, -np.inf).argmax(axis=1)
        needs = problem.margin[:, None] - base + base[np.arange(len(problem)), worst][:, None]
        needs = np.where(problem.good, needs, np.inf)
        open_ = problem.bad.any(axis=1) & problem.good.any(axis=1) & (needs.min(axis=1) > 0)
        needs[~open_] = np.inf  # no cut of theirs is kept
        return cls(worst, 1.0 / needs, open_)

    @property
    def most(self) -> NDArray[np.float64]:
        """The weight of the good action that lacks most."""
        return np.asarray(np.where(self.weights > 0, self.weights, np.inf).min(axis=1))


def weakest_cuts(
    problem: RepairProblem, parts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per open group, shapes (G,): the least left side of its cuts at a point, and whose."""
    needs, features, own = _Needs.of(problem), problem.features, np.arange(len(problem))
    up, down = parts.reshape(2, *features.allowed.shape)
    raising, lowering = _moves(features, up, down)
    single = problem.good.sum(axis=1) == 1
    gains = np.where(single[:, None], raising - lowering, raising)
    raised, lowered = raising[own, needs.worst], lowering[own, needs.worst]
    near = needs.weights.max(axis=1)
    least, far = np.full(len(problem), np.inf), needs.most
    for a in range(problem.num_actions):
        this = needs.weights[:, a]
        weights = np.where(problem.good, np.maximum(needs.weights, this[:, None]), 0.0)
        value = (weights * gains).sum(axis=1) + near * lowered - this * raised
        better = (this > 0) & (value < least)
        least[better], far[better] = value[better], this[better]
    return least, far


def _moves(
    features: Features, up: NDArray[np.float64], down: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much parts (J, A) of a change raise every score, and lower it; shapes (G, A)."""
    from safetest_gym.engine.kernels.repair import scores_kernel

    nothing = np.zeros_like(features.base)
    moves = []
    for same, other in ((up, down), (down, up)):
        total = np.zeros_like(features.base)
        for value, part in ((features.value, same), (-features.value, other)):
            move = np.empty_like(total)
            scores_kernel(features.index, np.maximum(value, 0), nothing, part, move)
            total += move
        moves.append(total)
    return moves[0], moves[1]


def disjunctive_cuts(problem: RepairProblem, far: NDArray[np.float64] | None = None) -> Any:
    """The cuts ``C parts >= 1`` of the groups that do not hold before the repair.

    Columns are the entries of the change, flat: positive parts, then negative ones.

    Args:
        far: which cut of every group, shape (G,); by default that with the least weights.
    """
    from scipy.sparse import csr_matrix

    features, count = problem.features, len(problem)
    needs = _Needs.of(problem)
    near, far = needs.weights.max(axis=1), needs.most if far is None else far
    several = problem.good.sum(axis=1) > 1
    size = features.allowed.size
    entries: list[tuple[Any, Any, Any]] = []
    for a in range(problem.num_actions):
        for group, is_bad in (
            (np.flatnonzero(needs.open & problem.good[:, a]), False),
            (np.flatnonzero(needs.open & (needs.worst == a)), True),
        ):
            value, index = features.value[group], features.index[group].astype(np.int64)
            value = value * features.allowed[index, a]
            if is_bad:
                low, high = far[group, None], near[group, None]
                up = np.maximum(-value * high, -value * low)
                down = np.maximum(value * high, value * low)
            else:
                up = value * np.maximum(needs.weights[group, a], far[group])[:, None]
                many = several[group, None]
                up, down = (np.where(many, np.maximum(part, 0), part) for part in (up, -up))
            column = index * problem.num_actions + a
            owner = np.repeat(group[:, None], index.shape[1], axis=1)
            entries += [(owner, column, up), (owner, column + size, down)]
    owners, columns, values = (np.concatenate([e[i].ravel() for e in entries]) for i in range(3))
    matrix = csr_matrix((values, (owners, columns)), shape=(count, 2 * size))[needs.open]
    matrix.eliminate_zeros()
    return matrix


def _covering_bound(cuts: Any, steps: int = 1500) -> tuple[float, NDArray[np.float64]]:
    """Lower bound of ``min sum(x), C x >= 1, x >= 0`` by restarted primal-dual steps, and x."""
    if not cuts.shape[0]:
        return 0.0, np.zeros(cuts.shape[1])
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
    return best, x


def _proved(transposed: Any, y: NDArray[np.float64]) -> float:
    """What prices prove once they are scaled to be feasible."""
    worst = float((transposed @ y).max(initial=0.0))
    return float(y.sum() / max(worst, 1e-12)) if worst > 0 else 0.0
