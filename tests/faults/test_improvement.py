from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine import machine
from safetest_gym.errors import ConfigError
from safetest_gym.faults.improvement import ImprovementOracle, UndoOracle, eliminate_actions
from safetest_gym.faults.objectives import GoalReaching, Safety, StepCost
from safetest_gym.faults.oracles import PerfectOracle
from safetest_gym.policies import CallablePolicy, Interface, RandomPolicy
from safetest_gym.task import Task, load_task
from tests.oracles.random_tasks import random_task

SEEDS = range(10)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def setting(seed: int, outcomes: int = 1) -> tuple[Task, RandomPolicy, Any]:
    task = random_task(seed, states=12, outcomes=outcomes)
    return task, RandomPolicy(Interface.of(task), seed), task.initial.enumerate(100)


@pytest.mark.parametrize("outcomes", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_improving_with_room_enough_is_perfect(seed: int, outcomes: int) -> None:
    task, policy, states = setting(seed, outcomes)
    objective = StepCost(task)
    perfect = PerfectOracle(task, policy, objective).confirm_all(states)
    oracle = ImprovementOracle(task, policy, objective)
    for state, truth in zip(states, perfect, strict=True):
        found = oracle.confirm(state)
        assert (found is None) == (truth is None)
        if found is not None and truth is not None:
            assert found.policy == truth.policy
            assert found.gap <= truth.gap


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_neighbourhood_finds_bugs_only(seed: int) -> None:
    task, policy, states = setting(seed)
    objective = StepCost(task)
    perfect = PerfectOracle(task, policy, objective).confirm_all(states)
    oracle = ImprovementOracle(task, policy, objective, neighbourhood=1)
    for state, truth in zip(states, perfect, strict=True):
        found = oracle.confirm(state)
        assert found is None or (truth is not None and found.gap <= truth.gap)


def follow(task: Task, state: Any, actions: list[int]) -> Any:
    for action in actions:
        (outcomes,) = [o for a, o in task.successors(state) if a == action]
        state = outcomes[0][1]
    return state


def test_needless_actions_are_left_out() -> None:
    tried = 0
    for seed in range(5):
        task = random_task(seed, states=14, outcomes=1)
        rng = np.random.default_rng(seed)
        for start in np.repeat(task.initial.enumerate(100), 12, axis=0):
            state = start
            actions: list[int] = []
            while not task.classify(state.reshape(1, -1))[0] and len(actions) < 15:
                choices = task.successors(state)
                if not choices or any(len(o) > 1 for _, o in choices):
                    break
                action, outcomes = choices[int(rng.integers(len(choices)))]
                actions.append(action)
                state = outcomes[0][1]
            if task.classify(state.reshape(1, -1))[0] == 2 and len(actions) > 3:
                kept = eliminate_actions(task, start, actions)
                tried += len(kept) < len(actions)
                assert task.is_goal(follow(task, start, kept))
    assert tried > 5


def _edge(action: str, guard: str, **values: int) -> dict[str, Any]:
    left, right = guard.split(" = ")
    assignments = [{"ref": name, "value": value} for name, value in values.items()]
    return {
        "location": "l",
        "action": action,
        "guard": {"exp": {"op": "=", "left": left, "right": int(right)}},
        "destinations": [{"location": "l", "assignments": assignments}],
    }


def test_a_state_that_a_shorter_run_comes_to_twice_costs_twice() -> None:
    actions = ["up", "x", "down", "y"]
    spoilt = _edge("x", "p = 0", k=2)
    arrive = _edge("y", "p = 0", done=1)
    arrive["guard"] = {"exp": {"op": "∧", "left": arrive["guard"]["exp"], "right": _below_2("k")}}
    edges = [_edge("up", "p = 0", p=1), _edge("x", "p = 1", k=1), spoilt]
    edges += [_edge("down", "p = 1", p=0), arrive]
    names = ("p", "k", "done")
    bounds = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 2}
    model = {
        "jani-version": 1,
        "name": "detour",
        "type": "lts",
        "actions": [{"name": name} for name in actions],
        "variables": [{"name": name, "type": bounds, "initial-value": 0} for name in names],
        "automata": [
            {"name": "a", "locations": [{"name": "l"}], "initial-locations": ["l"], "edges": edges}
        ],
        "system": {
            "elements": [{"automaton": "a"}],
            "syncs": [{"synchronise": [name], "result": name} for name in actions],
        },
    }
    task = load_task(model, goal="done = 1", failure="false")
    way = {(0, 0): "up", (1, 0): "x", (1, 1): "down", (0, 1): "y"}
    policy = CallablePolicy(lambda v, _: way[int(v["p"]), int(v["k"])], Interface.of(task))
    start = np.zeros(3, np.int64)
    assert eliminate_actions(task, start, [0, 1, 2, 3]) == [0, 2, 3]
    found = ImprovementOracle(task, policy, StepCost(task, "1 + 5 * k")).confirm(start)
    assert found is not None
    assert (found.policy, found.reachable) == (1 + 6 + 6 + 6, 3)


def _below_2(name: str) -> dict[str, Any]:
    return {"op": "<", "left": name, "right": 2}


@pytest.mark.parametrize("kind", [GoalReaching, StepCost])
@pytest.mark.parametrize("seed", SEEDS)
def test_going_back_confirms_bugs_only(seed: int, kind: Any) -> None:
    task, policy, states = setting(seed, outcomes=2)
    objective = GoalReaching() if kind is GoalReaching else StepCost(task)
    perfect = PerfectOracle(task, policy, objective).confirm_all(states)
    oracle = UndoOracle(task, policy, objective)
    for state, truth in zip(states, perfect, strict=True):
        for origin in states[:6]:
            found = oracle.confirm(state, origin)
            assert found is None or (truth is not None and found.gap <= truth.gap)


def test_going_back_confirms_something() -> None:
    found = 0
    for seed in SEEDS:
        task, policy, states = setting(seed)
        for objective in (GoalReaching(), StepCost(task)):
            oracle = UndoOracle(task, policy, objective)
            found += sum(oracle.confirm(s, o) is not None for s in states for o in states)
    assert found > 10


def test_without_an_origin_nothing_is_said() -> None:
    task, policy, states = setting(1)
    assert UndoOracle(task, policy, GoalReaching()).confirm(states[0]) is None


def test_going_back_says_nothing_about_safety() -> None:
    task, policy, _ = setting(1)
    with pytest.raises(ConfigError, match="GoalReaching and StepCost"):
        UndoOracle(task, policy, Safety())
    assert math.isinf(StepCost(task).worst)
