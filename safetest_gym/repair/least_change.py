"""The least change that meets all demands, by the method that fits the problem's size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.bound import Relaxed, relaxed
from safetest_gym.repair.branching import branched, branched_beside, is_leading
from safetest_gym.repair.exact import solve_exactly
from safetest_gym.repair.exchanging import exchanged
from safetest_gym.repair.first_order import FirstOrder
from safetest_gym.repair.fixed_choice import Effort, Polished, polish, rows_in_play
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.projections import Completed, completed
from safetest_gym.repair.restarting import restarted, settled, winning
from safetest_gym.repair.solver import SolverChoice

__all__ = ["DEFAULT_WORK", "Algorithm", "LeastChange", "Limits", "least_change"]

Algorithm = Literal["auto", "exact", "first-order"]

_EXACT_UP_TO = 100
"""Open groups that the mixed-integer program is practical for."""
_RESTARTING, _IMPROVING, _BRANCHING, _COMPLETING, _EXCHANGING = 0.01, 0.39, 0.3, 0.1, 0.2
"""Shares of the work: for other starts, better solutions near by, a better bound, a solution
where that leads, and still better ones. Where the optimum is to be proved, the last
two and what is left of the second are for the program that proves it."""
_ALONE = 0.07
"""Share of other starts where so much decides that there is no time for anything else."""
DEFAULT_WORK = 60.0
_ENOUGH, _NEARBY, _POLISHING, _RELAXING = 1.0, 0.6, 0.5, 0.7
"""Of that, what is enough otherwise: for branching, for a solution where it leads, for the
linear program of all entries with the winners of the best one, and for the relaxation."""
_BESIDE = 2.0
"""Times the work of branching that another processor takes for a second bound meanwhile."""
_FIRST, _STEPS = 300, 1000
"""First-order steps before a first look at what they lead to, and as a rule."""
_STRETCH = 1.5
"""The relaxation meets every demand by parts; stretched by so much, by one action."""
_STRETCHES = (2.0, 1.2, 3.0, 1.0)
_MORE = ((400, 4), (1500, 2))
"""How many more stretches are tried, by the number of open groups."""
_SEARCHED_UP_TO = 400
"""Open groups; of more, those in a neighbourhood are too small a part."""
_FAILURES = 6
"""Neighbourhoods without a better solution before the search ends."""
_NEIGHBOURHOOD = 1.0
"""Work for one neighbourhood at most."""
_FREE = 14
"""Groups whose winners are open in a neighbourhood."""
_ATTEMPTS = 4
"""How often other choices are tried before a conflict counts."""
_CONFIRMING = 5.0
"""Work for telling whether demands conflict."""
_CONFIRMED_UP_TO = 150
"""Groups that a conflict is to be proved for."""
_LARGE = 1000
"""Linear programs with more rows are not solved: projections come as close in less time."""
_CHEAP = 20_000
"""With more comparisons steps take long, and one search has to do."""
_MANY = 1500
"""With more groups a rough first solution has to do, which is improved later."""
_AGAIN, _SAME = 200, 400
"""First-order steps that begin with a solution: with any winners, and with its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When to stop improving.

    Attributes:
        work: for all that improves a first solution and its bound, in the units of
            `safetest_gym.repair.solver.Allowance`.
        gap: stop within this relative distance of the bound.
    """

    work: float = DEFAULT_WORK
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
    none = np.zeros(0, np.int64)
    nothing = np.zeros(problem.features.allowed.shape)
    open_ = int((problem.shortfall(nothing) > 0).sum())
    if not open_:
        return LeastChange(nothing, 0.0, 0.0, "nothing to do", none)
    exact = limits.algorithm == "exact" or (limits.algorithm == "auto" and open_ <= _EXACT_UP_TO)
    found, relaxation = _first(problem, solver, winners, limits.work)
    if found.change is None:
        few = len(found.conflict) <= _CONFIRMED_UP_TO
        confirmed = few and _impossible(problem, solver, found.conflict) is None
        return LeastChange(None, np.inf, 0.0, "first-order", found.conflict, confirmed)
    bound, share = relaxation.bound, max(1 - limits.gap, 1e-9)
    aim = _Aim(open_, bound / share, _IMPROVING * limits.work)
    best = _improved(problem, solver, (found.change, relaxation.change), aim)
    if open_ <= _SEARCHED_UP_TO:
        best = restarted(problem, best, aim.cost, _RESTARTING * limits.work, solver.stop)
        best = _searched(problem, solver, best, aim)
    cost, most = problem.cost(best), _most(_ENOUGH, limits.work)
    exact = exact and cost > aim.cost and not solver.stop.over()
    if exact:
        most = np.inf
        left = (1 - _RESTARTING - _BRANCHING) * limits.work - aim.spent
        solution, change = solve_exactly(problem, solver, best, (left, limits.gap))
        best, cost = _better(problem, best, change)
        bound = max(bound, solution.bound if np.isfinite(solution.bound) else 0.0)
    if bound < cost * share and not solver.stop.over():
        start, work = replace(relaxation, bound=bound), min(_BRANCHING * limits.work, most)
        leading = is_leading(problem, start, work)
        more = _BESIDE * work if leading and not exact else 0.0
        with branched_beside(problem, start, cost * share, more, solver.stop) as other:
            raised, change = branched(problem, start, cost * share, work, solver.stop)
            bound = max(bound, raised)
            near = change if leading else None
            best, cost = _better(problem, best, near)
            if not exact:
                aim = _Aim(open_, bound / share, limits.work)
                best = _further(problem, solver, (best, near), aim)
                cost = problem.cost(best)
            if bound < cost * share:
                bound = max(bound, other())
    return LeastChange(best, cost, min(bound, cost), "exact" if exact else "first-order", none)


def _most(enough: float, work: float) -> float:
    """What is enough by default, or as many times as much as there is more work."""
    return enough * max(1.0, work / DEFAULT_WORK)


def _further(
    problem: RepairProblem,
    solver: SolverChoice,
    known: tuple[NDArray[np.float64], NDArray[np.float64] | None],
    aim: _Aim,
) -> NDArray[np.float64]:
    """A better solution: near the change that a bound belongs to, if any, and from other starts.

    Args:
        known: the best solution and that change.
    """
    best, near = known
    if near is None:
        best = restarted(problem, best, aim.cost, _ALONE * aim.work, solver.stop)
        return settled(problem, best, solver.stop)
    completing = _COMPLETING * aim.work
    effort = Effort(min(completing, _most(_NEARBY, aim.work)), problem.cost(best))
    best, _ = _better(problem, best, polish(problem, solver, near, effort=effort).change)
    best = exchanged(problem, best, aim.cost, _EXCHANGING * aim.work / 2, solver.stop)
    best = restarted(problem, best, aim.cost, _RESTARTING * aim.work, solver.stop)
    best = exchanged(problem, best, aim.cost, _EXCHANGING * aim.work / 2, solver.stop)
    if problem.cost(best) <= aim.cost or solver.stop.over():
        return best
    choice = problem.best_good(problem.features.scores(best))
    effort = Effort(min(completing, _most(_POLISHING, aim.work)), problem.cost(best))
    return _better(problem, best, polish(problem, solver, best, choice, effort).change)[0]


def _better(
    problem: RepairProblem, best: NDArray[np.float64], found: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], float]:
    """The cheaper one of a solution and what may be one, and its cost."""
    cost = problem.cost(best)
    if found is None or not _holds(problem, found) or problem.cost(found) >= cost:
        return best, cost
    return found, problem.cost(found)


@dataclass(slots=True)
class _Aim:
    """What further searches are for: open groups, a cost that is good enough, and work."""

    open: int
    cost: float
    work: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        return self.work - self.spent


def _holds(problem: RepairProblem, change: NDArray[np.float64]) -> bool:
    return bool((problem.shortfall(change)[problem.hard] <= 1e-5).all())


def _first(
    problem: RepairProblem,
    solver: SolverChoice,
    winners: NDArray[np.int64] | None,
    work: float,
) -> tuple[Polished, Relaxed]:
    """A first solution: of the search that begins with nothing, or with the relaxation.

    In large problems the latter would take long and find little; a rough solution will do
    where steps are cheap.
    """
    search, relaxing = FirstOrder(problem), _most(_RELAXING, work)
    search.run(_FIRST, solver.stop)
    is_large = _is_large(search)
    if len(problem) > _MANY or is_large:
        is_cheap = len(search.rows.owner) <= _CHEAP
        found = _approached(problem, solver, search, () if is_cheap else (_AGAIN, _SAME))
        if found.change is None and (winners is not None or not is_large):
            found = _feasible(problem, solver, search, winners)
        if found.change is None:
            return found, Relaxed(0.0, search.x, found.conflict[:0], np.zeros(0))
        return found, relaxed(problem, search.prices, solver, relaxing)
    search.run(_FIRST, solver.stop)
    relaxation = relaxed(problem, search.prices, solver, relaxing)
    rival = _guided(problem, solver, _STRETCH * relaxation.change)
    if problem.cost(rival.x) < problem.cost(search.x):
        found = _settled(problem, solver, rival, Effort())
        if found.change is not None:
            return found, relaxation
    return _feasible(problem, solver, search, winners), relaxation


def _is_large(search: FirstOrder) -> bool:
    return bool(rows_in_play(search).sum() > _LARGE)


def _guided(problem: RepairProblem, solver: SolverChoice, near: NDArray[np.float64]) -> FirstOrder:
    search = FirstOrder(problem, near)
    search.run(_STEPS, solver.stop)
    return search


def _settled(
    problem: RepairProblem, solver: SolverChoice, search: FirstOrder, effort: Effort
) -> Polished:
    """A solution near what a search has come to, if that is easy and the clock allows it."""
    if solver.stop.over():
        return Polished(None, search.choice, np.zeros(0, np.int64))
    if _is_large(search):
        return _approached(problem, solver, search)
    return polish(problem, solver, search.x, search.choice, effort, rows_in_play(search))


def _feasible(
    problem: RepairProblem,
    solver: SolverChoice,
    search: FirstOrder,
    winners: NDArray[np.int64] | None,
) -> Polished:
    """A solution near the search's; where the choices conflict, others are tried for a while."""
    search.run(_STEPS - 2 * _FIRST, solver.stop)
    chosen = search.choice if winners is None else winners
    polished = polish(problem, solver, search.x, chosen, first=rows_in_play(search))
    known = np.zeros(0, np.int64)
    for _ in range(_ATTEMPTS):
        if polished.change is not None or not len(polished.conflict):
            break
        known = np.union1d(known, polished.conflict)
        other = _impossible(problem, solver, known)
        if other is None:
            return Polished(None, polished.choice, known)
        winners = polished.choice.copy()
        winners[known] = other
        polished = polish(problem, solver, search.x, winners)
    if polished.change is None and not len(polished.conflict):
        everything = np.flatnonzero(problem.hard)
        polished = Polished(None, polished.choice, everything)
    return polished


def _approached(
    problem: RepairProblem,
    solver: SolverChoice,
    search: FirstOrder,
    more: tuple[int, ...] = (_SAME,),
) -> Polished:
    """A solution near what steps arrive at; projections go far, so ``more`` steps follow.

    The last ones keep the winners, which can hold together, and so arrive where little is
    missing.
    """
    found = _completed(problem, solver, search.x)
    if found.change is None:
        return Polished(None, search.choice, found.stuck)
    best = found.change
    for number, steps in enumerate(more, start=1):
        if solver.stop.over():
            break
        is_last = number == len(more)
        part = replace(problem, good=winning(problem, best)) if is_last else problem
        search = FirstOrder(part, best, search.y)
        search.run(steps, solver.stop)
        best, _ = _better(problem, best, completed(part, search.x).change)
    return Polished(best, search.choice, np.zeros(0, np.int64))


def _completed(
    problem: RepairProblem, solver: SolverChoice, near: NDArray[np.float64]
) -> Completed:
    """Projections; a few groups that get stuck are given winners that can hold together."""
    narrowed = problem
    for _ in range(_ATTEMPTS):
        found = completed(narrowed, near)
        if found.change is not None or len(found.stuck) > _CONFIRMED_UP_TO:
            break
        winners = _impossible(problem, solver, found.stuck)
        if winners is None:
            break
        good = narrowed.good.copy()
        good[found.stuck] = np.arange(problem.num_actions) == winners[:, None]
        narrowed = replace(narrowed, good=good)
    return found


def _impossible(
    problem: RepairProblem, solver: SolverChoice, groups: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """None if these groups cannot hold together, else winners (maybe the old ones)."""
    part = problem.take(groups)
    solution, change = solve_exactly(part, solver, None, (_CONFIRMING, 0.9))
    if solution.status == "infeasible":
        return None
    scores = part.features.base if change is None else part.features.scores(change)
    return part.best_good(scores)


def _improved(
    problem: RepairProblem,
    solver: SolverChoice,
    known: tuple[NDArray[np.float64], NDArray[np.float64]],
    aim: _Aim,
) -> NDArray[np.float64]:
    """The best of further searches; ``known`` are a solution and the relaxation's change."""
    best, relaxation = known
    cost = problem.cost(best)
    for stretch in _STRETCHES[: next((count for size, count in _MORE if aim.open <= size), 0)]:
        if cost <= aim.cost or aim.left <= 0:
            break
        near = _guided(problem, solver, stretch * relaxation)
        found = _settled(problem, solver, near, Effort(aim.left, cost))
        aim.spent += found.work
        best, cost = _better(problem, best, found.change)
    return best


def _searched(
    problem: RepairProblem, solver: SolverChoice, best: NDArray[np.float64], aim: _Aim
) -> NDArray[np.float64]:
    """Choose the winners of a few groups anew, exactly, until that no longer helps."""
    rng = np.random.default_rng(1)
    cost, failures = problem.cost(best), 0
    while failures < _FAILURES and cost > aim.cost and aim.left > 0 and not solver.stop.over():
        near = _neighbourhood(problem, best, rng)
        work = min(_NEIGHBOURHOOD, aim.left)
        solution, found = solve_exactly(near, solver, best, (work, 1e-3))
        aim.spent += solution.work
        failures += 1
        if found is not None and _holds(problem, found) and problem.cost(found) < cost - 1e-6:
            best, cost, failures = found, problem.cost(found), 0
    return best


def _neighbourhood(
    problem: RepairProblem, best: NDArray[np.float64], rng: np.random.Generator
) -> RepairProblem:
    """The problem with all winners fixed but those of a few groups that share features."""
    tight = np.flatnonzero(problem.shortfall(best) > -1e-3)
    several = tight[problem.good[tight].sum(axis=1) > 1]
    good = winning(problem, best)
    if len(several):
        index = problem.features.index[several]
        centre = rng.integers(len(several))
        shared = (index == index[centre]).sum(axis=1)
        order = np.lexsort((rng.random(len(several)), -shared))
        free = several[order[:_FREE]]
        good[free] = problem.good[free]
    return replace(problem, good=good)
