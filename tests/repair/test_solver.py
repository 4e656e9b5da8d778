"""Which solver is used is never a secret, and both find the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.repair.repairing import RepairOptions
from safetest_gym.repair.solver import RESTRICTED_SIZE, Basis, Program, choose_solver
from tests.repair.faulty import faults_of, forest

SOLVERS: tuple[Any, ...] = ("gurobi", "highs")


def _program(rows: Any, least: Any, upper: float = np.inf, integer: Any = None) -> Program:
    matrix = np.asarray(rows, dtype=np.float64)
    count, size = matrix.shape
    return Program(
        cost=np.ones(size),
        lower=np.zeros(size),
        upper=np.full(size, upper),
        start=np.arange(0, count * size + 1, size, dtype=np.int32),
        columns=np.tile(np.arange(size, dtype=np.int32), count),
        values=matrix.ravel(),
        row_lower=np.asarray(least, dtype=np.float64),
        integer=integer,
    )


def _solver(name: Any) -> Any:
    if name == "gurobi":
        pytest.importorskip("gurobipy")
    return choose_solver(name)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_linear_program_is_solved(name: Any) -> None:
    solution = _solver(name).solve(_program([[1, 2], [1, 0]], [3, 0.5]), 10)
    assert solution.status == "optimal"
    assert solution.point == pytest.approx([0.5, 1.25])
    assert solution.bound == pytest.approx(1.75)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_integer_program_is_solved(name: Any) -> None:
    integer = np.array([True, True])
    solution = _solver(name).solve(_program([[2, 3]], [4], 9, integer), 10)
    assert solution.status == "optimal"
    assert solution.point.sum() == pytest.approx(2)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_infeasible_program_names_the_rows_that_conflict(name: Any) -> None:
    rows = [[1, 0, 0], [-1, 0, 0], [0, 1, 1]]
    solution = _solver(name).solve(_program(rows, [3, -2, 1]), 10)
    assert solution.status == "infeasible"
    assert solution.conflict.tolist() == [0, 1]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seed", range(10))
def test_where_a_solver_begins_changes_no_optimum(name: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, least = rng.random((30, 40)), rng.random(30)
    first = _solver(name).solve(_program(rows[:20], least[:20]))
    cold = _solver(name).solve(_program(rows, least))
    known = Basis(np.zeros(40, np.bool_), np.ones(20, np.bool_))
    if first.basis is not None:
        known = first.basis
        assert known.columns.sum() + known.rows.sum() == 20
        assert (first.point[~known.columns] == 0).all()
    new = np.ones(10, np.bool_)
    for columns in (known.columns, rng.random(40) < 0.5, np.ones(40, np.bool_)):
        basis = Basis(columns, np.concatenate([known.rows, new]))
        warm = _solver(name).solve(replace(_program(rows, least), basis=basis))
        assert warm.status == "optimal"
        assert warm.bound == pytest.approx(cold.bound)


def test_highs_explains_infeasible_programs_that_interior_points_solve() -> None:
    size = 1500
    rows = np.vstack([np.eye(size), -np.eye(size)[:1]])
    solution = choose_solver("highs").solve(_program(rows, [1.0] * size + [0.0]), 30)
    assert solution.status == "infeasible"
    assert solution.conflict.tolist() == [0, size]


def test_without_gurobipy_highs_is_used_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    policy = forest(2, vector=True)
    _, report = RepairOptions(method="leaves", work=1).run(policy, faults_of(policy, 2, 15))
    assert report.all_fixed
    assert report.solvers == ("highs",)
    assert "gurobipy is not installed" in report.notes[-1]


@pytest.mark.parametrize("code", [10009, 10022])
def test_a_broken_gurobi_licence_is_reported_and_highs_used(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gurobipy = pytest.importorskip("gurobipy")

    def refuse(**_: object) -> None:
        error = gurobipy.GurobiError(code, "no licence")
        raise error

    monkeypatch.setattr(gurobipy, "Env", refuse)
    policy = forest(2, vector=True)
    _, report = RepairOptions(method="leaves", work=1).run(policy, faults_of(policy, 2, 15))
    assert report.all_fixed
    assert report.solvers == ("highs",)
    assert str(code) in report.notes[-1]


def test_a_broken_gurobi_licence_is_an_error_for_those_who_asked_for_gurobi(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    with pytest.raises(ConfigError, match="Gurobi cannot be used: gurobipy is not installed"):
        choose_solver("gurobi")


def test_programs_beyond_the_restricted_licence_go_to_highs_with_a_note() -> None:
    pytest.importorskip("gurobipy")
    choice = choose_solver("auto")
    if choice.gurobi != "restricted":
        pytest.skip("this machine has a full Gurobi licence")
    size = RESTRICTED_SIZE + 1
    large = _program(np.ones((1, size)), [1])
    assert choice.solve(large, 10).status == "optimal"
    assert choice.used == {"highs"}
    assert "HiGHS is used" in choice.notes[0]
    with pytest.raises(ConfigError, match="exceeds Gurobi's restricted licence"):
        choose_solver("gurobi").solve(large, 10)


def test_highs_is_refused_in_a_process_with_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", sys)
    with pytest.raises(ConfigError, match="ortools"):
        choose_solver("highs")


def test_an_unknown_solver_is_refused() -> None:
    with pytest.raises(ConfigError, match="solver must be"):
        choose_solver("simplex")  # type: ignore[arg-type]  # that is the point
