"""Changes are feasible, nearly least, and the bounds hold."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from safetest_gym.repair.bound import Relaxed, relaxed
from safetest_gym.repair.branching import branched, branched_beside
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
        bound = relaxed(problem, prices, solver, 0.7).bound
        assert 0 < bound <= exact.cost + 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", ["weak", "strong"])
@pytest.mark.parametrize("is_cutting", [False, True])
def test_branching_over_all_groups_ends_at_the_optimum(
    seed: int, variant: Any, is_cutting: bool
) -> None:
    problem = _problem(seed, 5, variant)
    nothing = np.zeros(problem.features.allowed.shape)
    open_ = np.flatnonzero(problem.shortfall(nothing) > 0)
    start = Relaxed(0.0, nothing, open_[:0], np.zeros(0))
    best = least_cost_of_all(problem)
    stop = HardStop()
    bound, change = branched(problem, start, math.inf, 200.0, stop, is_cutting=is_cutting)
    assert bound == pytest.approx(best, rel=1e-4)
    assert problem.cost(change) == pytest.approx(best, rel=1e-4)
    assert (problem.shortfall(change) < 1e-5).all()
    less = branched(problem, start, 0.9 * best, 200.0, stop, is_cutting=is_cutting)
    assert less[0] == 0.9 * best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_cutting", [False, True])
def test_branching_only_raises_the_bound_and_never_above_the_optimum(
    seed: int, is_cutting: bool
) -> None:
    problem = _problem(seed, 20, "weak", actions=4)
    exact = least_change(problem, choose_solver("auto"), Limits(work=10, algorithm="exact"))
    start = relaxed(problem, np.ones(len(problem)), choose_solver("highs"), 0.7)
    bounds = [
        branched(problem, start, math.inf, work, HardStop(), is_cutting=is_cutting)[0]
        for work in (2e-6, 4e-4, 0.2)
    ]
    assert start.bound <= bounds[0] <= bounds[1] <= bounds[2]
    assert bounds[2] == pytest.approx(exact.cost, rel=1e-3)
    assert bounds[2] > start.bound
    late = branched(problem, start, math.inf, 0.2, HardStop(0.0), is_cutting=is_cutting)
    assert late[0] == start.bound


def test_cuts_that_come_in_do_not_change_the_optimum() -> None:
    problem = _problem(0, 40, "weak", actions=6, nodes=24)
    start = relaxed(problem, np.ones(len(problem)), choose_solver("highs"), 0.7)
    bounds = [
        branched(problem, start, math.inf, 2.0, HardStop(), is_cutting=is_cutting)[0]
        for is_cutting in (False, True)
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-5)


def test_a_bound_beside_is_that_of_the_same_search() -> None:
    problem = _problem(0, 20, "weak", actions=4)
    start = relaxed(problem, np.ones(len(problem)), choose_solver("highs"), 0.7)
    known = branched(problem, start, math.inf, 0.2, HardStop(), is_cutting=True)[0]
    with branched_beside(problem, start, math.inf, 0.2, HardStop()) as bound:
        assert bound() == known


def test_a_bound_beside_is_given_up_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up: list[bool] = []

    def long(*args: Any, **_: Any) -> tuple[float, None]:
        end = time.monotonic() + 60
        while not args[-1].over() and time.monotonic() < end:
            time.sleep(0.001)
        given_up.append(args[-1].over())
        return 0.0, None

    monkeypatch.setattr("safetest_gym.repair.branching.branched", long)
    problem = _problem(0, 5)
    start = relaxed(problem, np.ones(len(problem)), choose_solver("highs"), 0.7)
    with branched_beside(problem, start, math.inf, 1.0, HardStop()):
        assert not given_up
    assert given_up == [True]


def test_more_work_than_by_default_goes_on_raising_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "safetest_gym.repair.least_change"
    monkeypatch.setattr(f"{module}.DEFAULT_WORK", 0.5)
    monkeypatch.setattr(f"{module}._ENOUGH", 0.01)
    monkeypatch.setattr(f"{module}._BESIDE", 0.0)
    problem = _problem(0, 150, "weak", actions=8, nodes=16)
    usual, longer = (
        least_change(problem, choose_solver("highs"), Limits(work=work, algorithm="first-order"))
        for work in (0.5, 5.0)
    )
    assert usual.bound < longer.bound <= longer.cost <= usual.cost


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
