"""The least change by trying all combinations of winners."""

from __future__ import annotations

from itertools import product

import numpy as np

from safetest_gym.repair.fixed_choice import polish
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.solver import choose_solver

__all__ = ["least_cost_of_all"]


def least_cost_of_all(problem: RepairProblem) -> float:
    """The least cost over all combinations of winners, each a linear program."""
    best = np.inf
    options = [np.flatnonzero(good) for good in problem.good]
    solver = choose_solver("highs")
    nothing = np.zeros(problem.features.allowed.shape)
    for winners in product(*options):
        found = polish(problem, solver, nothing, np.array(winners)).change
        if found is not None:
            best = min(best, problem.cost(found))
    return best
