"""Other starts: what they find holds, never costs more, and comes out the same again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.repair import restarting
from safetest_gym.repair.features import layer_features, tree_features
from safetest_gym.repair.first_order import FirstOrder
from safetest_gym.repair.fixed_choice import polish
from safetest_gym.repair.problem import RepairProblem, repair_problem
from safetest_gym.repair.projections import completed
from safetest_gym.repair.restarting import restarted, settled, winning
from safetest_gym.repair.solver import choose_solver
from safetest_gym.repair.stop import HardStop
from tests.oracles.policies import random_network
from tests.oracles.winners import least_cost_of_all
from tests.repair.faulty import faults_of, forest

WORK = 0.5
ON, LATE = HardStop(), HardStop(0.0)


def _problem(seed: int, variant: Any, count: int = 40) -> RepairProblem:
    policy = forest(seed, trees=10, nodes=8, actions=5, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, count if variant == "weak" else count // 3)
    return repair_problem(tree_features(policy, faults.states)[0], faults, None, variant, 1e-3)


def _network_problem(seed: int) -> RepairProblem:
    network = random_network(np.random.default_rng(seed), (4, 24, 4))
    faults = faults_of(network, seed, 20)
    return repair_problem(layer_features(network, faults.states), faults, None, "weak", 1e-3)


def _solution(problem: RepairProblem) -> NDArray[np.float64]:
    change = completed(problem, np.zeros(problem.features.allowed.shape)).change
    assert change is not None
    return change


def _holds(problem: RepairProblem, change: NDArray[np.float64]) -> bool:
    return bool((problem.shortfall(change)[problem.hard] < 1e-5).all())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_starts_end_with_a_solution_that_costs_less(seed: int, variant: Any) -> None:
    problem = _problem(seed, variant)
    start = _solution(problem)
    kept = start.copy()
    best = restarted(problem, start, 0.0, WORK, ON)
    assert _holds(problem, best)
    assert problem.cost(best) < problem.cost(start)
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_array_equal(best, restarted(problem, start, 0.0, WORK, ON))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_of_few_groups_the_cost_is_nearly_the_least_one(seed: int, variant: Any) -> None:
    policy = forest(seed, trees=8, nodes=8, actions=4, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, 6)
    problem = repair_problem(tree_features(policy, faults.states)[0], faults, None, variant, 1e-3)
    least = least_cost_of_all(problem)
    start = _solution(problem)
    found = settled(problem, restarted(problem, start, 0.0, WORK, ON), ON)
    assert _holds(problem, found)
    assert least * (1 - 1e-3) <= problem.cost(found) <= 1.1 * least


@pytest.mark.parametrize("seed", range(4))
def test_settled_gains_nearly_what_the_linear_program_of_its_winners_does(seed: int) -> None:
    problem = _problem(seed, "weak")
    start = _solution(problem)
    choice = problem.best_good(problem.features.scores(start))
    wanted = polish(problem, choose_solver("highs"), start, choice).change
    assert wanted is not None
    found = settled(problem, start, ON)
    assert _holds(problem, found)
    own = replace(problem, good=winning(problem, start))
    assert _holds(own, found)
    gained, possible = (problem.cost(start) - problem.cost(c) for c in (found, wanted))
    assert gained > 0.9 * possible


@pytest.mark.parametrize("seed", range(3))
def test_demands_that_may_be_missed_count_with_their_price(seed: int) -> None:
    problem = _problem(seed, "weak")
    start = _solution(problem)
    weight = problem.weight.copy()
    weight[::3] = 0.05
    soft = replace(problem, weight=weight)
    found = restarted(soft, start, 0.0, WORK, ON)
    assert _holds(soft, found)
    assert soft.cost(found) < problem.cost(restarted(problem, start, 0.0, WORK, ON))


@pytest.mark.parametrize("seed", range(3))
def test_networks_are_left_no_worse(seed: int) -> None:
    problem = _network_problem(seed)
    start = _solution(problem)
    found = restarted(problem, start, 0.0, WORK, ON)
    assert _holds(problem, found)
    assert problem.cost(found) <= problem.cost(start)


def test_groups_that_matter_come_in_and_go_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(1, "weak", 120)
    start = _solution(problem)
    for name, count in (("_NEAREST", 5), ("_ADDED", 3), ("_MOST", 20)):
        monkeypatch.setattr(restarting, name, count)
    found = restarted(problem, start, 0.0, WORK, ON)
    assert _holds(problem, found)
    assert problem.cost(found) < problem.cost(start)


def test_a_solution_that_is_good_enough_is_left_as_it_is() -> None:
    problem = _problem(0, "weak")
    start = _solution(problem)
    assert restarted(problem, start, problem.cost(start), WORK, ON) is start
    assert restarted(problem, start, 0.0, WORK, LATE) is start
    assert settled(problem, start, LATE) is start
    assert restarted(problem, start, 0.0, 0.0, ON) is start


def test_nothing_open_is_nothing_to_shift() -> None:
    problem = _problem(0, "weak")
    problem = replace(problem, margin=np.full(len(problem), -1e9))
    start = np.full(problem.features.allowed.shape, 0.1)
    found = restarted(problem, start, 0.0, WORK, ON)
    assert _holds(problem, found)
    assert problem.cost(found) <= problem.cost(start)


def test_hardly_any_work_is_hardly_any_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(0, "weak", 120)
    start = _solution(problem)
    entries: list[int] = []
    run = FirstOrder.run

    def counted(search: FirstOrder, *arguments: Any) -> None:
        run(search, *arguments)
        entries.append(search.entries)

    monkeypatch.setattr(FirstOrder, "run", counted)
    taken = []
    for work in (1e-3, WORK):
        entries.clear()
        restarted(problem, start, 0.0, work, ON)
        taken.append(sum(entries))
    assert 0 < taken[0] < taken[1]


def test_starts_that_lead_nowhere_end_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(0, "weak")
    start = _solution(problem)
    tried: list[Any] = []
    monkeypatch.setattr(restarting._Search, "_tried", lambda _, start: tried.append(start))
    assert restarted(problem, start, 0.0, WORK, ON) is start
    searches = restarting._ROUNDS * restarting._SEARCHES
    assert len(tried) == restarting._FAILURES * searches
