"""Solutions found from a known one: they hold, never cost more, and come out the same again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from safetest_gym.repair import exchanging
from safetest_gym.repair.covering import UNIT, Covering
from safetest_gym.repair.exchanging import exchanged
from safetest_gym.repair.features import layer_features, tree_features
from safetest_gym.repair.fixed_choice import Effort, polish
from safetest_gym.repair.problem import RepairProblem, repair_problem
from safetest_gym.repair.projections import completed
from safetest_gym.repair.solver import choose_solver
from safetest_gym.repair.stop import HardStop
from tests.oracles.policies import random_network
from tests.oracles.winners import least_cost_of_all
from tests.repair.faulty import faults_of, forest

WORK = 0.3
ON, LATE = HardStop(), HardStop(0.0)


def _problem(seed: int, variant: Any, kind: str = "trees") -> RepairProblem:
    if kind == "trees":
        policy = forest(seed, trees=10, nodes=8, actions=5, vector=seed % 2 == 0)
        faults = faults_of(policy, seed, 40 if variant == "weak" else 15)
        return repair_problem(tree_features(policy, faults.states)[0], faults, None, variant, 1e-3)
    network = random_network(np.random.default_rng(seed), (4, 24, 4))
    faults = faults_of(network, seed, 30)
    return repair_problem(layer_features(network, faults.states), faults, None, variant, 1e-3)


def _holds(problem: RepairProblem, change: Any) -> bool:
    return bool((problem.shortfall(change) < 1e-5).all())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_exchanges_end_with_a_solution_that_costs_no_more(seed: int, variant: Any) -> None:
    problem = _problem(seed, variant)
    nothing = np.zeros(problem.features.allowed.shape)
    start = completed(problem, nothing).change
    assert start is not None
    best = exchanged(problem, start, 0.0, WORK, ON)
    assert _holds(problem, best)
    assert problem.cost(best) < problem.cost(start)
    again = exchanged(problem, start, 0.0, WORK, ON)
    np.testing.assert_array_equal(best, again)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_of_few_groups_all_winners_are_found(seed: int, variant: Any) -> None:
    policy = forest(seed, trees=8, nodes=8, actions=4, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, 6)
    problem = repair_problem(tree_features(policy, faults.states)[0], faults, None, variant, 1e-3)
    wide = problem.widened(100)
    start = completed(wide, np.zeros(problem.features.allowed.shape)).change
    assert start is not None
    best = least_cost_of_all(problem)
    found = exchanged(problem, start, best, WORK, ON)
    assert _holds(problem, found)
    assert problem.cost(found) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_demands_that_may_be_missed_count_with_their_price(seed: int) -> None:
    problem = _problem(seed, "weak")
    weight = problem.weight.copy()
    weight[::3] = 0.05
    problem = replace(problem, weight=weight)
    start = completed(problem, np.zeros(problem.features.allowed.shape)).change
    assert start is not None
    found = exchanged(problem, start, 0.0, WORK, ON)
    assert (problem.shortfall(found)[problem.hard] < 1e-5).all()
    assert problem.cost(found) < problem.cost(start)
    all_hard = replace(problem, weight=np.full(len(problem), np.inf))
    assert problem.cost(found) < problem.cost(exchanged(all_hard, start, 0.0, WORK, ON))


def test_there_need_not_be_room_for_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(0, "weak")
    start = completed(problem, np.zeros(problem.features.allowed.shape)).change
    assert start is not None
    for name, room in (("_NUMBERS", 1), ("_NEAREST", 2)):
        monkeypatch.setattr(exchanging, name, room)
        found = exchanged(problem, start, 0.0, WORK, ON)
        assert _holds(problem, found)
        assert problem.cost(found) < problem.cost(start)
    monkeypatch.setattr(exchanging, "_ROWS", 1)
    assert exchanged(problem, start, 0.0, WORK, ON) is start
    monkeypatch.setattr(exchanging, "_ROWS", 3000)
    monkeypatch.setattr(exchanging, "_OTHERS", 0)
    assert _holds(problem, exchanged(problem, start, 0.0, WORK, ON))


def test_a_solution_that_is_good_enough_is_left_as_it_is() -> None:
    problem = _problem(0, "weak")
    nothing = np.zeros(problem.features.allowed.shape)
    start = completed(problem, nothing).change
    assert start is not None
    assert exchanged(problem, start, problem.cost(start), WORK, ON) is start
    assert exchanged(problem, start, 0.0, WORK, LATE) is start


@pytest.mark.parametrize("kind", ["trees", "network"])
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_completing_begins_anywhere_and_ends_where_all_demands_hold(
    kind: str, variant: Any
) -> None:
    problem = _problem(1, variant, kind)
    solver = choose_solver("highs")
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(5):
        near = rng.normal(0, 0.3, problem.features.allowed.shape) * problem.features.allowed
        found = polish(problem, solver, near, effort=Effort())
        if found.change is not None:
            ends += 1
            assert _holds(problem, found.change)
            assert found.work > 0
        else:
            assert len(found.conflict) > 0
    assert ends > 0


def test_what_becomes_dearer_than_the_cutoff_by_far_is_not_completed() -> None:
    problem = _problem(0, "weak")
    nothing = np.zeros(problem.features.allowed.shape)
    solver = choose_solver("highs")
    cost = problem.cost(polish(problem, solver, nothing).change)  # type: ignore[arg-type]  # found
    assert polish(problem, solver, nothing, effort=Effort(cutoff=cost / 50)).change is None
    assert polish(problem, solver, nothing, effort=Effort(work=0.0)).change is None


def test_hardly_any_work_is_hardly_any_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(0, "weak")
    start = completed(problem, np.zeros(problem.features.allowed.shape)).change
    assert start is not None
    programs: list[int] = []
    solve = Covering.solve

    def counted(*arguments: Any) -> Any:
        vertex = solve(*arguments)
        programs.append(vertex.work)
        return vertex

    monkeypatch.setattr(Covering, "solve", counted)
    taken = []
    for work in (1e-3, 1e-1):
        programs.clear()
        exchanged(problem, start, 0.0, work, ON)
        taken.append(sum(programs))
        assert taken[-1] < 1.5 * work * UNIT
    assert taken[0] < taken[1]
