"""Projections complete what is nearly feasible, and name what gets into each other's way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine.kernels.repair import projections_kernel
from safetest_gym.repair import least_change as least_change_module
from safetest_gym.repair.features import tree_features
from safetest_gym.repair.first_order import FirstOrder
from safetest_gym.repair.least_change import Limits, least_change
from safetest_gym.repair.problem import Features, RepairProblem, repair_problem
from safetest_gym.repair.projections import completed
from safetest_gym.repair.solver import choose_solver
from tests.oracles.projections import projected
from tests.repair.faulty import faults_of, forest


def _problem(seed: int, count: int, actions: int = 4) -> RepairProblem:
    policy = forest(seed, trees=9, nodes=12, actions=actions, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, count)
    return repair_problem(tree_features(policy, faults.states)[0], faults, None, "strong", 1e-3)


def _one_state(good: list[list[int]], bad: list[list[int]], base: list[float]) -> RepairProblem:
    """Demands that no change can tell apart."""
    count, actions = len(good), len(base)
    wins, loses = (np.zeros((count, actions), np.bool_) for _ in range(2))
    for mask, members in ((wins, good), (loses, bad)):
        for row, actions_of_row in enumerate(members):
            mask[row, actions_of_row] = True
    features = Features(
        np.tile(np.arange(3, dtype=np.int32), (count, 1)),
        np.ones((count, 3)),
        np.tile(np.array(base), (count, 1)),
        np.ones((3, actions), np.bool_),
    )
    margin, weight = np.full(count, 1e-3), np.full(count, np.inf)
    return RepairProblem(features, wins, loses, margin, weight, np.arange(count), count)


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_does_what_its_slow_twin_does(seed: int) -> None:
    problem = _problem(seed, 12)
    features = problem.features
    change = np.random.default_rng(seed).normal(0, 0.1, features.allowed.shape)
    change[~features.allowed] = 0.0
    wanted, expected = projected(problem, change, 0.01, 60)
    last = np.full(len(problem), -1)
    data = (features.index, features.value, features.base, features.allowed)
    demands = (*data, problem.good, problem.bad, problem.margin)
    assert projections_kernel(demands, change, last, 0.01, 60) == expected
    np.testing.assert_allclose(change, wanted, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_completed_changes_meet_all_demands(seed: int) -> None:
    problem = _problem(seed, 40)
    exact = least_change(problem, choose_solver("highs"), Limits(work=2))
    found = completed(problem, np.zeros(problem.features.allowed.shape))
    if exact.change is None:
        assert found.change is None
        assert len(found.stuck)
        return
    assert found.change is not None
    assert problem.shortfall(found.change).max() <= 0
    assert not found.change[~problem.features.allowed].any()


def test_demands_turn_to_the_action_that_serves_both() -> None:
    # Whatever wins first, only action 0 can win for both, and it is far behind.
    problem = _one_state([[0, 1], [0, 2]], [[2], [1]], [-8.0, 1.0, 1.0])
    found = completed(problem, np.zeros((3, 3)))
    assert found.change is not None
    assert problem.features.scores(found.change)[0].argmax() == 0


def test_what_cannot_hold_together_is_stuck() -> None:
    problem = _one_state([[0], [1], [2]], [[1], [0], []], [0.0, 0.0, 0.0])
    found = completed(problem, np.zeros((3, 3)))
    assert found.change is None
    assert found.stuck.tolist() == [0, 1]


def test_projections_give_up_early_where_a_crowd_stays_unsettled() -> None:
    count = 1100
    everyone = _one_state([[0], [1]] * count, [[1], [0]] * count, [0.0, 0.0])
    found = completed(everyone, np.zeros((3, 2)))
    assert found.change is None
    assert len(found.stuck) == 2 * count
    features = everyone.features
    last = np.full(2 * count, -1)
    data = (features.index, features.value, features.base, features.allowed)
    demands = (*data, everyone.good, everyone.bad, everyone.margin)
    assert projections_kernel(demands, np.zeros((3, 2)), last, 0.01, 2500) == 2500
    assert last.max() < 500


def test_soft_demands_are_left_alone() -> None:
    problem = _one_state([[0], [1]], [[1], [0]], [0.0, 1.0])
    problem = replace(problem, weight=np.array([np.inf, 2.0]))
    found = completed(problem, np.zeros((3, 2)))
    assert found.change is not None
    assert problem.shortfall(found.change)[0] <= 0


@pytest.mark.parametrize("seed", range(4))
def test_large_problems_end_close_to_what_linear_programs_find(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = _problem(seed, 150, actions=3)
    solver, limits = choose_solver("highs"), Limits(algorithm="first-order")
    programs = least_change(problem, solver, limits)
    monkeypatch.setattr(least_change_module, "_LARGE", 0)
    projections = least_change(problem, solver, limits)
    assert (programs.change is None) == (projections.change is None)
    if projections.change is not None:
        assert problem.shortfall(projections.change).max() <= 0
        assert projections.cost <= 1.1 * programs.cost


@pytest.mark.parametrize("seed", range(4))
def test_steps_that_keep_the_winners_lower_the_cost(seed: int) -> None:
    problem, solver = _problem(seed, 150, actions=3), choose_solver("highs")
    search = FirstOrder(problem)
    search.run(200, solver.stop)
    found = least_change_module._approached(problem, solver, search, ())
    better = least_change_module._approached(problem, solver, search, (200, 400))
    assert (found.change is None) == (better.change is None)
    if found.change is not None and better.change is not None:
        assert problem.shortfall(better.change).max() <= 1e-5
        assert problem.cost(better.change) < problem.cost(found.change)


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_winners_that_cannot_win_together_are_not_believed(name: Any) -> None:
    # A solver whose integers are off by 1e-6 lets actions 1 and 2 win, one each.
    problem = _one_state([[0, 1], [0, 2]], [[2], [1]], [-8.0, 1.0, 1.0])
    winners = least_change_module._impossible(problem, choose_solver(name), np.arange(2))
    assert winners is not None
    assert winners.tolist() == [0, 0]
