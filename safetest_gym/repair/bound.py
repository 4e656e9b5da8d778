"""A lower bound on the size of any change that meets the demands.

Every group gives one cut over the positive and negative parts of the change: whichever of
its good actions wins, the largest of the alternatives' coefficients is valid. The least sum
of parts that meets the cuts is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import Program, SolverChoice

__all__ = ["ROUNDING", "Relaxed", "disjunctive_cuts", "relaxed", "tightened"]

_ENTRIES, _FIRST_ENTRIES = 500_000, 120_000
"""Size of a linear program over all cuts at most, and of the first one where that is too large."""
_ROUNDS, _MORE = 2, 100
"""How often groups that the relaxation misses by most are added, and how many of them."""
ROUNDING = 1e-6
"""Solvers are exact to about this fraction."""
_BINDING = 0.02
"""Cuts that the relaxation exceeds by less than this fraction bind, or nearly so."""
_WORTH = 0.01
"""Stop when another round raises the bound by less than this fraction."""
_LOOK = 50
_CLOSE = 2e-3


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """What the cuts alone demand.

    Attributes:
        bound: no change that meets the demands costs less.
        change: shape (J, A), the change that meets the cuts at that cost, or nearly so.
        binding: groups whose cuts it meets with nothing to spare, where that is known.
        deciding: those of them whose cuts alone give the bound.
        complete: does it meet the cuts of all groups?
    """

    bound: float
    change: NDArray[np.float64]
    binding: NDArray[np.int64]
    deciding: NDArray[np.int64]
    complete: bool = False


def relaxed(problem: RepairProblem, prices: NDArray[np.float64], solver: SolverChoice) -> Relaxed:
    """A bound from the cuts of the hard groups with the highest prices (G,), and some more.

    The linear program over the cuts is solved if the solver's licence and the clock allow
    it, otherwise nearly solved by primal-dual steps on the priced ones.
    """
    hard = np.flatnonzero(problem.hard)
    ordered = hard[np.argsort(-prices[hard], kind="stable")]
    width = 2 * problem.features.index.shape[1] * problem.num_actions
    all_fit = len(hard) * width <= _ENTRIES
    first = hard if all_fit else np.sort(ordered[: max(_FIRST_ENTRIES // width, 1)])
    best = _over(problem, first, solver)
    if best is None:
        cuts = disjunctive_cuts(problem.take(hard[prices[hard] > 0]))
        columns, none = np.unique(cuts.indices), np.zeros(0, np.int64)
        bound, parts = _covering_bound(cuts[:, columns])
        return Relaxed(bound, _change(problem, columns, parts), none, none)
    return tightened(problem, replace(best, complete=all_fit), solver)


def tightened(problem: RepairProblem, relaxation: Relaxed, solver: SolverChoice) -> Relaxed:
    """The relaxation with cuts of the groups that it misses by most, a few times."""
    best = relaxation
    for _ in range(0 if best.complete else _ROUNDS):
        missed = np.where(problem.hard, problem.shortfall(best.change) / problem.margin, 0)
        missed[best.binding] = 0
        most = np.argsort(-missed, kind="stable")[:_MORE]
        more = most[missed[most] > ROUNDING]
        better = _over(problem, np.union1d(best.binding, more), solver) if len(more) else None
        if better is None or better.bound <= best.bound:
            break
        gained, best = better.bound / max(best.bound, 1e-12) - 1, better
        if gained < _WORTH:
            break
    return best


def _over(
    problem: RepairProblem, groups: NDArray[np.int64], solver: SolverChoice
) -> Relaxed | None:
    """The relaxation over the cuts of these groups; None without a licence or time for it."""
    open_ = groups[_needs(problem.take(groups))[2]]
    cuts = disjunctive_cuts(problem.take(open_))
    columns = np.unique(cuts.indices)
    program = _covering_program(cuts[:, columns])
    if not len(open_) or not solver.allows(program) or solver.stop.over():
        return None
    solution = solver.solve(program)
    if solution.status != "optimal" or solution.point is None:
        return None
    bound = float(solution.bound * (1 - ROUNDING))
    binding = open_[cuts[:, columns] @ solution.point < 1 + _BINDING]
    deciding = binding if solution.basis is None else open_[~solution.basis.rows]
    return Relaxed(bound, _change(problem, columns, solution.point), binding, deciding)


def _change(
    problem: RepairProblem, columns: NDArray[np.int64], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    allowed = problem.features.allowed
    both = np.zeros(2 * allowed.size)
    both[columns] = parts
    change = both[: allowed.size] - both[allowed.size :]
    return np.asarray(change.reshape(allowed.shape), dtype=np.float64)


def _covering_program(cuts: Any) -> Program:
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
    )


def disjunctive_cuts(problem: RepairProblem) -> Any:
    """The cuts ``C parts >= 1`` of the groups that do not hold before the repair.

    Columns are the entries of the change, flat: positive parts, then negative ones.
    """
    from scipy.sparse import csr_matrix

    features, count = problem.features, len(problem)
    worst, needs, open_ = _needs(problem)
    needs[~open_] = np.inf  # no cut of theirs is kept
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
    return matrix


def _needs(
    problem: RepairProblem,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Per group: its worst bad action, what good ones lack to beat it, and is it open?"""
    base = problem.features.base
    worst = np.where(problem.bad, base, -np.inf).argmax(axis=1)
    needs = problem.margin[:, None] - base + base[np.arange(len(problem)), worst][:, None]
    needs = np.where(problem.good, needs, np.inf)
    open_ = problem.bad.any(axis=1) & problem.good.any(axis=1) & (needs.min(axis=1) > 0)
    return worst, needs, open_


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
