"""Changes are feasible, nearly least, and the bounds hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from safetest_gym.repair.bound import Relaxed, relaxed
from safetest_gym.repair.branching import branched
from safetest_gym.repair.features import layer_features, tree_features
from safetest_gym.repair.least_change import Limits, least_change
from safetest_gym.repair.problem import RepairProblem, repair_problem
from safetest_gym.repair.solver import choose_solver
from safetest_gym.repair.stop import HardStop
from tests.oracles.policies import random_network
from tests.oracles.winners import least_cost_of_all
from tests.repair.faulty import faults_of, forest


def _problem(
    seed: int, count: int, variant: Any = "strong", actions: int = 3, nodes: int = 8
) -> RepairProblem:
    policy = forest(seed, trees=nodes, nodes=nodes, actions=actions, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, count)
    return repair_problem(tree_features(policy, faults.states)[0], faults, None, variant, 1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_few_demands_are_solved_to_the_optimum_of_all_combinations(seed: int, variant: Any) -> None:
    problem = _problem(seed, 5, variant)
    result = least_change(problem, choose_solver("auto"), Limits(work=10, gap=1e-6))
    assert result.cost == pytest.approx(least_cost_of_all(problem), rel=1e-4)
    assert result.bound <= result.cost + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_exceeds_the_optimum(seed: int) -> None:
    problem = _problem(seed, 20)
    exact = least_change(problem, choose_solver("auto"), Limits(work=10, algorithm="exact"))
    prices = np.ones(len(problem))
    for seconds in (math.inf, 0.0):  # by a linear program, and without
        solver = choose_solver("highs", HardStop(seconds))
        bound = relaxed(problem, prices, solver).bound
        assert 0 < bound <= exact.cost + 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_branching_over_all_groups_ends_at_the_optimum(seed: int, variant: Any) -> None:
    problem = _problem(seed, 5, variant)
    nothing = np.zeros(problem.features.allowed.shape)
    open_ = np.flatnonzero(problem.shortfall(nothing) > 0)
    start = Relaxed(0.0, nothing, open_[:0], np.zeros(0))
    best = least_cost_of_all(problem)
    solver = choose_solver("highs")
    bound, change = branched(problem, start, math.inf, 200.0, solver)
    assert change is not None
    assert bound == pytest.approx(best, rel=1e-4)
    assert problem.cost(change) == pytest.approx(best, rel=1e-4)
    assert (problem.shortfall(change) < 1e-5).all()
    assert branched(problem, start, 0.9 * best, 200.0, solver)[0] == 0.9 * best


@pytest.mark.parametrize("seed", range(3))
def test_branching_only_raises_the_bound_and_never_above_the_optimum(seed: int) -> None:
    problem = _problem(seed, 20, "weak", actions=4)
    exact = least_change(problem, choose_solver("auto"), Limits(work=10, algorithm="exact"))
    solver = choose_solver("highs")
    start = relaxed(problem, np.ones(len(problem)), solver)
    bounds = [branched(problem, start, math.inf, work, solver)[0] for work in (2e-6, 4e-4, 0.2)]
    assert start.bound <= bounds[0] <= bounds[1] <= bounds[2]
    assert bounds[2] == pytest.approx(exact.cost, rel=1e-3)
    assert bounds[2] > start.bound
    late = choose_solver("highs", HardStop(0.0))
    assert branched(problem, start, math.inf, 0.2, late)[0] == start.bound


def test_the_bound_is_tight_where_no_group_has_an_alternative() -> None:
    problem = _problem(0, 20, actions=2)
    result = least_change(problem, choose_solver("highs"), Limits(work=5, algorithm="first-order"))
    assert result.bound == pytest.approx(result.cost, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_first_order_method_is_within_two_percent_of_the_optimum(seed: int) -> None:
    problem = _problem(seed, 100, nodes=24)
    results = {
        name: least_change(problem, choose_solver("auto"), Limits(work=8, gap=1e-3, algorithm=name))
        for name in ("first-order", "exact")
    }
    quick, best = results["first-order"], results["exact"]
    assert quick.change is not None
    assert quick.cost <= 1.02 * best.cost
    assert problem.shortfall(quick.change).max() < 1e-5


def test_networks_are_the_same_problem_with_dense_features() -> None:
    policy = random_network(np.random.default_rng(0), [4, 32, 4])
    faults = faults_of(policy, 0, 12)
    features = layer_features(policy, faults.states)
    problem = repair_problem(features, faults, None, "strong", 1e-3)
    result = least_change(problem, choose_solver("highs"), Limits(work=3))
    assert result.change is not None
    assert problem.shortfall(result.change).max() < 1e-5
    assert 0 < result.bound <= result.cost


def test_equal_demands_on_equal_features_are_one_group() -> None:
    policy = forest(3, trees=1, nodes=1, vector=True)
    faults = faults_of(policy, 3, 60)
    problem = repair_problem(tree_features(policy, faults.states)[0], faults, None, "weak", 1e-3)
    keys = {
        (problem.features.index[g].tobytes(), problem.good[g].tobytes(), problem.bad[g].tobytes())
        for g in range(len(problem))
    }
    assert len(keys) == len(problem) < len(faults)
    assert (problem.bad[problem.group, faults.actions]).all()


def test_features_give_the_scores_of_the_policy() -> None:
    for policy in (forest(1, vector=True), forest(1, vector=False)):
        faults = faults_of(policy, 1, 30)
        features, _ = tree_features(policy, faults.states)
        assert features.base == pytest.approx(policy.scores(faults.states), abs=1e-5)
