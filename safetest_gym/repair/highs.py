"""HiGHS as a solver, in this process."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from safetest_gym.repair.solver import INTEGRALITY, Allowance, Basis, Program, Solution

__all__ = ["solve_highs"]

_INTERIOR_FROM = 1000
"""Linear programs larger than this are solved by interior points."""
_UNITS_PER_ENTRY = 1.2e-7
"""Work between two looks at a mixed-integer program, per entry of its matrix."""
_UNITS_PER_PIVOT = 2e-8
"""Work of a linear program, per simplex step, row and column."""
_UNITS_PER_NUMBER = 2e-7
"""Work for handing a linear program over, per column and entry of its matrix."""
_HEURISTICS = ("feasibility_jump", "rens", "rins", "root_reduced_cost")
"""They take long between two looks, and find next to nothing where a good point is known."""


class _Meter:
    """Ends a mixed-integer program after a number of looks; HiGHS looks at fixed places."""

    def __init__(self, most: float) -> None:
        self.most, self.looks = most, 0

    def __call__(self, event: Any) -> None:
        self.looks += 1
        if self.looks > self.most:
            event.interrupt()


def solve_highs(program: Program, allowance: Allowance) -> Solution:
    """Solve with HiGHS."""
    highspy: Any = import_module("highspy")
    _watch_forks()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    if math.isfinite(allowance.seconds):
        solver.setOptionValue("time_limit", allowance.seconds)
    solver.setOptionValue("mip_rel_gap", allowance.gap)
    solver.setOptionValue("mip_feasibility_tolerance", INTEGRALITY)
    solver.setOptionValue("threads", 1)
    known = program.basis is not None
    interior = program.integer is None and program.size > _INTERIOR_FROM and not known
    if interior:
        solver.setOptionValue("solver", "ipm")
    elif program.integer is None:
        # Presolve may find a program infeasible without a ray that explains it.
        solver.setOptionValue("presolve", "off")
    solver.passModel(_model(highspy, program))
    if program.basis is not None:
        solver.setBasis(_to_highs(highspy, program.basis))
    if program.guess is not None:
        guess = highspy.HighsSolution()
        guess.col_value = program.guess.tolist()
        solver.setSolution(guess)
        for name in _HEURISTICS:
            solver.setOptionValue(f"mip_heuristic_run_{name}", False)
    unit = _UNITS_PER_ENTRY * max(len(program.values), 1)
    meter = _Meter(allowance.work / unit)
    if program.integer is not None:
        solver.cbMipInterrupt += meter
    solver.run()
    if interior and solver.getModelStatus() in _infeasible(highspy):
        solver.setOptionValue("solver", "simplex")
        solver.setOptionValue("presolve", "off")
        solver.clearSolver()
        solver.run()
    return replace(
        _solution(highspy, solver, program),
        work=meter.looks * unit if program.integer is not None else _work(solver, program),
        late=solver.getModelStatus() == highspy.HighsModelStatus.kTimeLimit,
    )


def _work(solver: Any, program: Program) -> float:
    """What a linear program took."""
    pivots = max(int(solver.getInfo().simplex_iteration_count), 0)
    given = len(program.cost) + len(program.values)
    size = len(program.cost) + len(program.row_lower)
    return _UNITS_PER_PIVOT * pivots * size + _UNITS_PER_NUMBER * given


def _model(highspy: Any, program: Program) -> Any:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.row_lower)
    model.col_cost_, model.col_lower_ = program.cost, program.lower
    model.col_upper_ = program.upper
    model.row_lower_ = program.row_lower
    model.row_upper_ = np.full(len(program.row_lower), highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.start
    model.a_matrix_.index_ = program.columns
    model.a_matrix_.value_ = program.values
    if program.integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(flag)] for flag in program.integer]
    return model


def _solution(highspy: Any, solver: Any, program: Program) -> Solution:
    status, codes, info = solver.getModelStatus(), highspy.HighsModelStatus, solver.getInfo()
    none = np.zeros(0, np.int64)
    if status in _infeasible(highspy):
        rows = none if program.integer is not None else _ray(solver)
        return Solution(status="infeasible", point=None, bound=np.inf, conflict=rows)
    optimal = status == codes.kOptimal
    integer = program.integer is not None
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if integer:
        bound = float(info.mip_dual_bound)
    else:
        bound = float(info.objective_function_value) if optimal else -np.inf
    point = np.array(solver.getSolution().col_value) if found else None
    basis = None if integer or not optimal else _from_highs(highspy, solver.getBasis())
    if not optimal:
        name = "feasible" if found else "unknown"
        return Solution(status=name, point=point, bound=bound, conflict=none)  # type: ignore[arg-type]  # one of the two
    return Solution(status="optimal", point=point, bound=bound, conflict=none, basis=basis)


def _to_highs(highspy: Any, basis: Basis) -> Any:
    kinds = (highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kBasic)
    result = highspy.HighsBasis()
    result.col_status = [kinds[is_basic] for is_basic in basis.columns.tolist()]
    result.row_status = [kinds[is_basic] for is_basic in basis.rows.tolist()]
    return result


def _from_highs(highspy: Any, basis: Any) -> Basis | None:
    if not basis.valid:
        return None
    basic = highspy.HighsBasisStatus.kBasic
    columns, rows = (
        np.array([status == basic for status in part], np.bool_)
        for part in (basis.col_status, basis.row_status)
    )
    return Basis(columns, rows)


def _infeasible(highspy: Any) -> tuple[Any, ...]:
    codes = highspy.HighsModelStatus
    return (codes.kInfeasible, codes.kUnboundedOrInfeasible)


def _ray(solver: Any) -> Any:
    """Rows with a multiplier in the proof of infeasibility."""
    result = solver.getDualRay()
    _, has_ray, values = result if len(result) == 3 else (None, False, None)
    if not has_ray:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.abs(np.asarray(values)) > 1e-9)


@cache
def _watch_forks() -> None:
    """Warn when this process is forked later: its copy of the solver hangs or lies."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn_of_fork)


def _warn_of_fork() -> None:
    warnings.warn(
        "this process has used HiGHS; its forked children must not solve anything (use the "
        "'spawn' start method of multiprocessing)",
        RuntimeWarning,
        stacklevel=2,
    )
