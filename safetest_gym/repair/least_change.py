"""The least change that meets all demands, by the method that fits the problem's size."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.bound import lower_bound
from safetest_gym.repair.exact import solve_exactly
from safetest_gym.repair.first_order import FirstOrder
from safetest_gym.repair.fixed_choice import Polished, polish
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import SolverChoice

__all__ = ["Algorithm", "LeastChange", "Limits", "least_change"]

Algorithm = Literal["auto", "exact", "first-order"]

_EXACT_UP_TO = 100
"""Open groups that the mixed-integer program is practical for."""
_BOUNDING, _LEAST_BOUNDING = 5.0, 0.5
"""Seconds for the bound at most, and at least if the time limit leaves less."""
_IMPROVING = 0.4
"""Share of the time limit for better solutions, before the program that proves them."""
_STEPS = 1000
_STARTS = ((100, 8), (400, 4), (1500, 2))
"""How many searches from different first choices, by the number of open groups."""
_SEARCHED_UP_TO = 400
_FAILURES = 6
"""Neighbourhoods without a better solution before the search ends."""
_NEIGHBOURHOOD_SECONDS = 1.0
_FREE = 14
"""Groups whose winners are open in a neighbourhood."""
_ATTEMPTS = 4
"""How often other choices are tried before a conflict counts."""
_CONFIRM_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When to stop improving.

    Attributes:
        time_limit: seconds; a first solution is completed all the same.
        gap: stop within this relative distance of the bound.
    """

    time_limit: float = 60.0
    gap: float = 1e-4
    algorithm: Algorithm = "auto"


@dataclass(frozen=True, slots=True, eq=False)
class LeastChange:
    """A change, or groups that no change can satisfy together.

    Attributes:
        change: shape (J, A); None if there is a conflict.
        bound: no change costs less.
        confirmed: whether the conflict is proved, not only for the choices that were tried.
    """

    change: NDArray[np.float64] | None
    cost: float
    bound: float
    algorithm: Literal["exact", "first-order", "nothing to do"]
    conflict: NDArray[np.int64]
    confirmed: bool = False


def least_change(
    problem: RepairProblem,
    solver: SolverChoice,
    limits: Limits,
    winners: NDArray[np.int64] | None = None,
) -> LeastChange:
    """Solve; exactly for few open groups, otherwise nearly, with a lower bound.

    Args:
        winners: good actions per group that can win together, where that is known.
    """
    begun = time.monotonic()
    none = np.zeros(0, np.int64)
    nothing = np.zeros(problem.features.allowed.shape)
    open_ = int((problem.shortfall(nothing) > 0).sum())
    if not open_:
        return LeastChange(nothing, 0.0, 0.0, "nothing to do", none)
    deadline = begun + limits.time_limit
    exact = limits.algorithm == "exact" or (limits.algorithm == "auto" and open_ <= _EXACT_UP_TO)
    search, polished = _feasible(problem, solver, deadline, winners)
    if polished.change is None:
        confirmed = _impossible(problem, solver, polished.conflict) is None
        return LeastChange(None, np.inf, 0.0, "first-order", polished.conflict, confirmed)
    share = _IMPROVING if exact else 1.0
    effort = open_, begun + share * limits.time_limit
    best = _improved(problem, solver, polished.change, effort)
    cost = problem.cost(best)
    prices = np.zeros(len(problem))
    np.add.at(prices, search.rows.owner, search.y)
    seconds = max(deadline - time.monotonic(), _LEAST_BOUNDING)
    bound = min(lower_bound(problem, prices, solver, min(seconds, _BOUNDING)), cost)
    if not exact or cost - bound <= limits.gap * cost:
        return LeastChange(best, cost, bound, "first-order", none)
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        return LeastChange(best, cost, bound, "first-order", none)
    solution, change = solve_exactly(problem, solver, best, (remaining, limits.gap))
    if change is not None and _holds(problem, change) and problem.cost(change) < cost:
        best, cost = change, problem.cost(change)
    bound = min(max(bound, solution.bound if np.isfinite(solution.bound) else 0.0), cost)
    return LeastChange(best, cost, bound, "exact", none)


def _holds(problem: RepairProblem, change: NDArray[np.float64]) -> bool:
    return bool((problem.shortfall(change)[problem.hard] <= 1e-5).all())


def _feasible(
    problem: RepairProblem,
    solver: SolverChoice,
    deadline: float,
    winners: NDArray[np.int64] | None,
) -> tuple[FirstOrder, Polished]:
    """A first solution; where the choices conflict, other ones are tried for a while."""
    search = FirstOrder(problem)
    search.run(_STEPS, deadline)
    if winners is not None:
        search.choice = winners
    polished = polish(problem, solver, search, deadline)
    known = np.zeros(0, np.int64)
    for _ in range(_ATTEMPTS):
        if polished.change is not None or not len(polished.conflict):
            break
        known = np.union1d(known, polished.conflict)
        other = _impossible(problem, solver, known)
        if other is None:
            return search, Polished(None, search.choice, known)
        search.choice[known] = other
        polished = polish(problem, solver, search, deadline)
    if polished.change is None and not len(polished.conflict):
        everything = np.flatnonzero(problem.hard)
        polished = Polished(None, search.choice, everything)
    return search, polished


def _impossible(
    problem: RepairProblem, solver: SolverChoice, groups: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """None if these groups cannot hold together, else winners (maybe the old ones)."""
    part = problem.take(groups)
    solution, change = solve_exactly(part, solver, None, (_CONFIRM_SECONDS, 0.9))
    if solution.status == "infeasible":
        return None
    scores = part.features.base if change is None else part.features.scores(change)
    winners = np.where(part.good, scores, -np.inf).argmax(axis=1)
    return np.asarray(winners, dtype=np.int64)


def _improved(
    problem: RepairProblem,
    solver: SolverChoice,
    best: NDArray[np.float64],
    effort: tuple[int, float],
) -> NDArray[np.float64]:
    """The best of further searches from other first choices."""
    open_, deadline = effort
    rng = np.random.default_rng(0)
    starts = next((count for size, count in _STARTS if open_ <= size), 0)
    cost = problem.cost(best)
    for _ in range(starts):
        if time.monotonic() > deadline:
            return best
        search = FirstOrder(problem, rng)
        search.run(_STEPS, deadline)
        found = polish(problem, solver, search, deadline, patience=0.0).change
        if found is not None and problem.cost(found) < cost:
            best, cost = found, problem.cost(found)
    return _searched(problem, solver, best, effort) if open_ <= _SEARCHED_UP_TO else best


def _searched(
    problem: RepairProblem,
    solver: SolverChoice,
    best: NDArray[np.float64],
    effort: tuple[int, float],
) -> NDArray[np.float64]:
    """Choose the winners of a few groups anew, exactly, until that no longer helps."""
    rng = np.random.default_rng(1)
    cost, failures = problem.cost(best), 0
    while failures < _FAILURES and time.monotonic() < effort[1]:
        near = _neighbourhood(problem, best, rng)
        seconds = min(_NEIGHBOURHOOD_SECONDS, effort[1] - time.monotonic())
        _, found = solve_exactly(near, solver, best, (seconds, 1e-3))
        failures += 1
        if found is not None and _holds(problem, found) and problem.cost(found) < cost - 1e-6:
            best, cost, failures = found, problem.cost(found), 0
    return best


def _neighbourhood(
    problem: RepairProblem, best: NDArray[np.float64], rng: np.random.Generator
) -> RepairProblem:
    """The problem with all winners fixed but those of a few groups that share features."""
    features = problem.features
    scores = np.where(problem.good, features.scores(best), -np.inf)
    tight = np.flatnonzero(problem.shortfall(best) > -1e-3)
    several = tight[problem.good[tight].sum(axis=1) > 1]
    winners = scores.argmax(axis=1)
    good = np.zeros_like(problem.good)
    good[np.arange(len(good)), winners] = True
    if len(several):
        centre = rng.choice(several)
        shared = (features.index[several] == features.index[centre]).sum(axis=1)
        order = np.lexsort((rng.random(len(several)), -shared))
        free = several[order[:_FREE]]
        good[free] = problem.good[free]
    return replace(problem, good=good & problem.good)
