from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine import machine
from safetest_gym.errors import ConfigError
from safetest_gym.faults.expected import (
    DiscountedReward,
    GoalProbability,
    SamplePlan,
    sampled_value,
)
from safetest_gym.faults.objectives import (
    FailureAvoidance,
    GoalReaching,
    Objective,
    Safety,
    SoftGoals,
    StepCost,
)
from safetest_gym.faults.task_graph import TaskGraph
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task
from tests.oracles.objectives import SmallTask, best_value, policy_value
from tests.oracles.random_tasks import random_task

KINDS = ("Safety", "GoalReaching", "StepCost", "GoalProbability", "DiscountedReward")
SEEDS = range(12)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def objective_of(kind: str, task: Task) -> Objective:
    made: dict[str, Any] = {
        "Safety": Safety,
        "GoalReaching": GoalReaching,
        "StepCost": lambda: StepCost(task),
        "GoalProbability": GoalProbability,
        "DiscountedReward": lambda: DiscountedReward(
            discount=0.9, goal=1.0, failing=-2.0, step=-0.1
        ),
    }
    objective: Objective = made[kind]()
    return objective


@cache
def setting(seed: int, mode: Any = "label") -> tuple[Task, RandomPolicy, Any, SmallTask]:
    task = random_task(seed, states=9, actions=2, outcomes=2, mode=mode)
    policy = RandomPolicy(Interface.of(task), seed)
    states = task.initial.enumerate(100)
    return task, policy, states, SmallTask(task, states)


def plan_of(small: SmallTask, policy: RandomPolicy) -> dict[Any, int]:
    plan = {}
    for state, choices in small.choices.items():
        if choices:
            mask = small.task.applicable(np.array(state)).reshape(1, -1)
            plan[state] = int(policy.actions(np.array([state]), mask)[0])
    return plan


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_policies_are_those_of_the_definition(seed: int, kind: str, mode: Any) -> None:
    task, policy, states, small = setting(seed, mode)
    graph = TaskGraph(task, states, policy=policy)
    bounds = objective_of(kind, task).values(graph.policy_choices())
    plan = plan_of(small, policy)
    for state, number in zip(states.tolist(), graph.roots, strict=True):
        expected = policy_value(kind, small, plan, tuple(state))
        assert bounds.low[number] == pytest.approx(expected, abs=1e-6)
        assert bounds.high[number] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_optimal_values_are_those_of_the_best_policy(seed: int, kind: str) -> None:
    task, _, states, small = setting(seed)
    graph = TaskGraph(task, states)
    bounds = objective_of(kind, task).values(graph.all_choices())
    for state, number in zip(states.tolist(), graph.roots, strict=True):
        expected = best_value(kind, small, tuple(state))
        assert bounds.low[number] == pytest.approx(expected, abs=1e-6)
        assert bounds.high[number] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1, 4, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_graph_is_cut_off_values_are_bounds(seed: int, limit: int, kind: str) -> None:
    task, _, states, small = setting(seed)
    graph = TaskGraph(task, states[:1], limit=limit)
    bounds = objective_of(kind, task).values(graph.all_choices())
    expected = best_value(kind, small, tuple(states[0].tolist()))
    number = graph.roots[0]
    assert bounds.low[number] - 1e-6 <= expected <= bounds.high[number] + 1e-6


def worst_run(small: SmallTask, plan: Any, state: Any, steps: int, worth: Any) -> float:
    """Finite games by recursion: the best over plans, the worst over outcomes."""
    here = worth(state)
    choices = small.choices[state]
    if not steps or not choices:
        return float(here)
    allowed = [choices[plan[state]]] if plan else list(choices.values())
    later = max(
        min(worst_run(small, plan, o, steps - 1, worth) for _, o in outcomes)
        for outcomes in allowed
    )
    return float(max(here, later)) if here >= 0 else later


@pytest.mark.parametrize("steps", [0, 1, 2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_failure_avoidance_is_a_game_of_so_many_steps(seed: int, steps: int) -> None:
    task, policy, states, small = setting(seed)
    graph = TaskGraph(task, states, policy=policy)

    def surely_fine(state: Any, left: int, plan: Any) -> bool:
        if small.failing(state):
            return False
        choices = small.choices[state]
        if not left or not choices:
            return True
        allowed = [choices[plan[state]]] if plan else list(choices.values())
        return any(all(surely_fine(o, left - 1, plan) for _, o in outs) for outs in allowed)

    for part, plan in (
        (graph.policy_choices(), plan_of(small, policy)),
        (graph.all_choices(), None),
    ):
        values = FailureAvoidance(steps).values(part).high
        for state, number in zip(states.tolist(), graph.roots, strict=True):
            assert values[number] == (not surely_fine(tuple(state), steps, plan))


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_soft_goals_are_worth_the_best_state_of_the_worst_run(seed: int, steps: int) -> None:
    task, policy, states, small = setting(seed)
    objective = SoftGoals(task, {"s > 3": 2.0, "s < 6": 1.0, "s = 2": 4.0}, steps)
    graph = TaskGraph(task, states, policy=policy)

    def worth(state: Any) -> float:
        s = state[0]
        return 0.0 if small.failing(state) else 2.0 * (s > 3) + (s < 6) + 4.0 * (s == 2)

    for part, plan in (
        (graph.policy_choices(), plan_of(small, policy)),
        (graph.all_choices(), None),
    ):
        values = objective.values(part).low
        for state, number in zip(states.tolist(), graph.roots, strict=True):
            assert values[number] == worst_run(small, plan, tuple(state), steps, worth)


def test_step_costs_come_from_an_expression() -> None:
    task, policy, states, _ = setting(1)
    graph = TaskGraph(task, states, policy=policy)
    unit = StepCost(task).values(graph.all_choices()).low
    double = StepCost(task, "2").values(graph.all_choices()).low
    assert np.array_equal(2 * unit, double)


def test_a_negative_step_cost_is_named() -> None:
    task, policy, states, _ = setting(1)
    graph = TaskGraph(task, states, policy=policy)
    with pytest.raises(ConfigError, match="negative"):
        StepCost(task, "s - 4").values(graph.all_choices())


@pytest.mark.parametrize("kind", ["GoalProbability", "DiscountedReward"])
@pytest.mark.parametrize("seed", range(6))
def test_sampled_bounds_hold_the_value(seed: int, kind: str) -> None:
    task, policy, states, small = setting(seed)
    objective: Any = objective_of(kind, task)
    plan = plan_of(small, policy)
    sampling = SamplePlan(runs=2000, steps=60, confidence=0.9999, seed=seed)
    for state in states[:3]:
        low, high = sampled_value(objective, task, policy, state, sampling)
        assert low <= policy_value(kind, small, plan, tuple(state.tolist())) <= high
        if kind == "DiscountedReward":  # a run that goes round tells nothing of the goal
            assert high - low < 0.2 * (objective.best - objective.worst)


def test_infinite_costs_are_infinite_and_not_numbers_that_grow() -> None:
    found = set()
    for seed in SEEDS:
        task, policy, states, _ = setting(seed)
        graph = TaskGraph(task, states, policy=policy)
        found |= set(StepCost(task).values(graph.policy_choices()).high.tolist())
    assert math.inf in found
    assert 0.0 in found
