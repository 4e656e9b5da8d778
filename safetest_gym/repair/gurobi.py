"""Gurobi as a solver; knows its licences, never falls back by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from safetest_gym.repair.solver import INTEGRALITY, RESTRICTED_SIZE, Allowance, Program, Solution

__all__ = ["probe_gurobi", "solve_gurobi"]

_SIZE_LIMIT = 10010


def probe_gurobi() -> tuple[Literal["full", "restricted", "none"], str]:
    """What Gurobi can do here, and why not everything.

    An empty model one variable beyond the restricted licence tells, in a millisecond.
    """
    try:
        import gurobipy
    except ImportError as error:
        return "none", f"gurobipy is not installed ({error})"
    try:
        with _environment(gurobipy) as environment, gurobipy.Model(env=environment) as model:
            model.addVars(RESTRICTED_SIZE + 1)
            model.optimize()
    except gurobipy.GurobiError as error:
        if error.errno == _SIZE_LIMIT:
            return "restricted", f"the licence allows {RESTRICTED_SIZE} variables and rows"
        return "none", f"Gurobi's licence does not work (error {error.errno}: {error})"
    return "full", ""


def _environment(gurobipy: Any) -> Any:
    return gurobipy.Env(params={"OutputFlag": 0})


def solve_gurobi(program: Program, allowance: Allowance) -> Solution:
    """Solve with Gurobi."""
    import gurobipy
    from scipy.sparse import csr_matrix

    shape = len(program.row_lower), len(program.cost)
    matrix = csr_matrix((program.values, program.columns, program.start), shape=shape)
    with _environment(gurobipy) as environment, gurobipy.Model(env=environment) as model:
        parameters: Any = model.Params
        if math.isfinite(allowance.seconds):
            parameters.TimeLimit = allowance.seconds
        if math.isfinite(allowance.work) and program.integer is not None:
            parameters.WorkLimit = allowance.work
        parameters.MIPGap = allowance.gap
        parameters.IntFeasTol = INTEGRALITY
        parameters.Threads = 1  # with more, methods race for linear programs
        parameters.InfUnbdInfo = 1
        kinds: Any = np.full(shape[1], gurobipy.GRB.CONTINUOUS)
        if program.integer is not None:
            kinds[program.integer] = gurobipy.GRB.INTEGER
        columns: dict[str, Any] = {
            "lb": program.lower,
            "ub": program.upper,
            "obj": program.cost,
            "vtype": kinds,
        }
        x: Any = model.addMVar(shape[1], **columns)
        rows = model.addMConstr(matrix, x, ">", program.row_lower) if shape[0] else None
        if program.guess is not None:
            x.Start = program.guess
        model.optimize()
        integer = program.integer is not None
        return replace(
            _solution(gurobipy, model, x, rows, integer),
            work=float(model.Work),
            late=model.Status == gurobipy.GRB.TIME_LIMIT,
        )


def _solution(gurobipy: Any, model: Any, x: Any, rows: Any, integer: bool) -> Solution:
    none = np.zeros(0, np.int64)
    codes = gurobipy.GRB
    if model.Status in (codes.INFEASIBLE, codes.INF_OR_UNBD):
        model.computeIIS()
        members = np.flatnonzero(np.atleast_1d(rows.IISConstr))
        return Solution(status="infeasible", point=None, bound=np.inf, conflict=members)
    if not model.SolCount:
        bound = float(model.ObjBound) if integer else -np.inf
        return Solution(status="unknown", point=None, bound=bound, conflict=none)
    optimal = model.Status == codes.OPTIMAL
    bound = float(model.ObjBound) if integer or optimal else -np.inf
    return Solution(
        status="optimal" if optimal else "feasible",
        point=np.asarray(x.X, dtype=np.float64),
        bound=bound,
        conflict=none,
    )
