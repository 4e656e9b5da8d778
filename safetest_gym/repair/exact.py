"""Least change as a mixed-integer program: a binary says which good action wins ([C] 5.2).

The constants that switch rows off come from a known solution: no entry of a better change
can move a difference of scores further than that solution costs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.bound import disjunctive_cuts
from safetest_gym.repair.fixed_choice import comparison_program
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.reduction import useful_columns, with_columns
from safetest_gym.repair.solver import Program, Solution, SolverChoice

__all__ = ["solve_exactly"]

_UNKNOWN_COST = 1e4
"""Changes that cost more, where no solution is known, are not looked for."""


def solve_exactly(
    problem: RepairProblem,
    solver: SolverChoice,
    known: NDArray[np.float64] | None,
    limits: tuple[float, float],
) -> tuple[Solution, NDArray[np.float64] | None]:
    """The least change (J, A), at ``limits`` of work and relative gap.

    Without a known solution, "infeasible" means: none that costs less than 10,000.
    """
    group, good = np.nonzero(problem.good & np.any(problem.bad, axis=1, keepdims=True))
    option, bad = np.nonzero(problem.bad[group])
    owner = group[option]
    index = problem.features.index[owner].astype(np.int64) * problem.num_actions
    columns = np.unique(
        np.concatenate([index + good[option][:, None], index + bad[:, None]]).ravel()
    )
    columns = columns[problem.features.allowed.ravel()[columns]]
    plain = comparison_program(problem, owner, good[option], bad, columns)
    cost = _UNKNOWN_COST if known is None else problem.cost(known) * (1 + 1e-6) + 1e-6
    program = _with_cuts(problem, _with_choices(problem, plain, (group, option), cost), columns)
    if known is not None:
        guess = _guess(problem, known, (group, good, columns), program)
        program = replace(program, guess=guess)
    width = len(columns)
    useful = useful_columns(plain, 2 * width)
    kept = np.concatenate([useful, np.arange(2 * width, len(program.cost))])
    solution = solver.solve(with_columns(program, kept), *limits)
    if solution.point is None:
        return solution, None
    point = np.zeros(len(program.cost))
    point[kept] = solution.point
    change = np.zeros(problem.features.allowed.shape)
    change.ravel()[columns] = point[:width] - point[width : 2 * width]
    return solution, change


def _with_choices(
    problem: RepairProblem,
    plain: Program,
    options: tuple[NDArray[np.int64], NDArray[np.int64]],
    cost: float,
) -> Program:
    """Binaries per option, rows that count only for the chosen one, and one row per group."""
    from scipy.sparse import bmat, csr_matrix

    group, option = options
    reach = np.abs(problem.features.value).max(axis=1)[group[option]] * cost
    several = (problem.good.sum(axis=1) > 1)[group[option]]
    off = np.where(several, np.maximum(plain.row_lower + reach, 0.0), 0.0)
    count, size = len(plain.row_lower), len(plain.cost)
    matrix = csr_matrix((plain.values, plain.columns, plain.start), shape=(count, size))
    switch = csr_matrix((-off, (np.arange(count), option)), shape=(count, len(group)))
    present, place = np.unique(group, return_inverse=True)
    one = csr_matrix(
        (np.ones(len(group)), (place, np.arange(len(group)))), shape=(len(present), len(group))
    )
    full = bmat([[matrix, switch], [None, one]], format="csr")
    full.eliminate_zeros()
    return Program(
        cost=np.concatenate([plain.cost, np.zeros(len(group))]),
        lower=np.zeros(size + len(group)),
        upper=np.concatenate([np.full(size, np.inf), np.ones(len(group))]),
        start=full.indptr.astype(np.int32),
        columns=full.indices.astype(np.int32),
        values=full.data,
        row_lower=np.concatenate([plain.row_lower - off, np.ones(len(present))]),
        integer=np.arange(size + len(group)) >= size,
    )


def _with_cuts(problem: RepairProblem, program: Program, columns: NDArray[np.int64]) -> Program:
    """What follows for the parts of the change however the choices are made.

    The rows that choices switch on say next to nothing while a choice is a fraction.
    """
    from scipy.sparse import csr_matrix, hstack, vstack

    cuts = disjunctive_cuts(problem.take(np.flatnonzero(problem.hard)))
    parts = cuts[:, np.concatenate([columns, columns + problem.features.allowed.size])]
    count, size = parts.shape[0], len(program.cost)
    rest = csr_matrix((count, size - parts.shape[1]))
    shape = len(program.row_lower), size
    rows = csr_matrix((program.values, program.columns, program.start), shape=shape)
    full = vstack([rows, hstack([parts, rest])], format="csr")
    return replace(
        program,
        start=full.indptr.astype(np.int32),
        columns=full.indices.astype(np.int32),
        values=full.data,
        row_lower=np.concatenate([program.row_lower, np.ones(count)]),
    )


def _guess(
    problem: RepairProblem,
    known: NDArray[np.float64],
    names: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    program: Program,
) -> NDArray[np.float64]:
    """The known solution in the program's variables."""
    group, good, columns = names
    flat = known.ravel()[columns]
    scores = np.where(problem.good, problem.features.scores(known), -np.inf)
    binaries = (scores.argmax(axis=1)[group] == good).astype(np.float64)
    missed = np.maximum(problem.shortfall(known), 0)
    soft = np.unique(group[~problem.hard[group]])
    parts = [np.maximum(flat, 0), np.maximum(-flat, 0), missed[soft], binaries]
    guess = np.concatenate(parts)
    assert len(guess) == len(program.cost)
    return guess
