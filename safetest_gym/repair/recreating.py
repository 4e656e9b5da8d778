"""Better solutions of a repair: parts of one are taken back, and who misses them chooses anew.

Which action wins a group decides what others cost, and a search that only goes downhill keeps
most of the winners it began with. So each try begins elsewhere: where branching leads, at the
best solution, then at what is left of it without some of its entries. Linear programs do the
rest; they are small, as few groups decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.fixed_choice import Effort, polish
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import SolverChoice

__all__ = ["recreated"]

_WORK = 1.0
"""For all tries together."""
_TRIES = 20
_BY_ACTION = 0.5
"""Share of tries without all entries for one action; the others are without one group's."""
_TIGHT = 1e-6


def recreated(
    problem: RepairProblem,
    solver: SolverChoice,
    best: NDArray[np.float64],
    near: NDArray[np.float64],
    enough: float,
) -> NDArray[np.float64]:
    """The best of some tries, a change (J, A).

    Args:
        best: a solution.
        near: a change that meets many demands at little cost, to begin with.
        enough: the cost to stop at.
    """
    rng = np.random.default_rng(2)
    cost, work = problem.cost(best), 0.0
    for number in range(_TRIES):
        if cost <= enough or work >= _WORK or solver.stop.over():
            break
        start = (near, best)[number] if number < 2 else _ruined(problem, best, rng)
        found = polish(problem, solver, start, effort=Effort(_WORK - work, cost))
        work += found.work
        if found.change is not None and problem.cost(found.change) < cost:
            best, cost = found.change, problem.cost(found.change)
    return best


def _ruined(
    problem: RepairProblem, best: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """A solution without its entries for one action, or without those that one group uses."""
    near = best.copy()
    if rng.random() < _BY_ACTION:
        near[:, rng.choice(np.flatnonzero(near.any(axis=0)))] = 0.0
    else:
        spare = -problem.shortfall(best)
        tight = np.flatnonzero(spare <= max(spare.min(), _TIGHT))
        near[problem.features.index[rng.choice(tight)]] = 0.0
    return near
