from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine import machine
from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing import (
    Backward,
    End,
    Forward,
    Fuzzer,
    Operator,
    Perturb,
    PoolConfig,
    PoolFuzzer,
    Reached,
)
from safetest_gym.fuzzing.biases import weights
from safetest_gym.fuzzing.novelty import NoveltyTable
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task, load_task
from tests.oracles.random_tasks import grid_task, random_task


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def pool_of(
    task: Task, operator: Operator | None = None, **options: Any
) -> list[tuple[tuple[Any, ...], int, int]]:
    policy = RandomPolicy(Interface.of(task), 3)
    config = PoolConfig(**{"size": 40, "starts": 2, "seed": 4, **options})
    pool = PoolFuzzer(task, policy, config, operator=operator).run()
    return [(tuple(entry.state.tolist()), entry.parent, entry.steps) for entry in pool]


def reach(task: Task, state: tuple[Any, ...], steps: int) -> set[tuple[Any, ...]]:
    """States within so many steps."""
    seen, layer = {state}, {state}
    for _ in range(steps):
        layer = {
            tuple(o.tolist())
            for s in layer
            if not task.classify(np.array([s]))[0]
            for _, outcomes in task.successors(np.array(s))
            for _, o in outcomes
        }
        seen |= layer
    return seen


@pytest.mark.parametrize("bias", ["none", "quality", "plan_length", "detour", "loopiness"])
def test_each_state_is_so_many_steps_from_its_parent(bias: Any) -> None:
    task = grid_task(8)
    pool = pool_of(task, bias=bias, walk=4)
    assert len(pool) > 10
    assert len({state for state, _, _ in pool}) == len(pool)
    for state, parent, steps in pool[2:]:
        assert 1 <= steps <= 4
        assert state in reach(task, pool[parent][0], steps)


def test_the_same_seed_gives_the_same_pool_and_another_one_another() -> None:
    task = grid_task(8)
    assert pool_of(task) == pool_of(task)
    assert pool_of(task) != pool_of(task, seed=5)


def test_any_whole_number_is_a_seed() -> None:
    task = grid_task()
    assert pool_of(task, seed=-1) != pool_of(task, seed=0)


def test_failing_states_and_dead_ends_stay_out() -> None:
    for seed in range(4):
        task = random_task(seed, states=40)
        for state, parent, _ in pool_of(task, bias="plan_length"):
            vector = np.array(state)
            stuck = not task.applicable(vector).any() and not task.is_goal(vector)
            assert parent < 0 or not (task.is_failing(vector) or stuck)


def novelty(state: tuple[Any, ...], before: list[tuple[Any, ...]], size: int) -> int:
    """Straight from the definition."""
    for k in range(1, size + 1):
        for places in combinations(range(len(state)), k):
            if not any(all(s[p] == state[p] for p in places) for s in before):
                return k
    return size + 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_novelty_is_the_size_of_the_smallest_new_combination(size: int, data: Any) -> None:
    task = load_task(data / "ferry.jani")
    rng = np.random.default_rng(size)
    low = np.array([v.lower or 0 for v in task.variables], np.int64)
    high = np.array([1 if v.upper is None else v.upper for v in task.variables], np.int64)
    table = NoveltyTable(task, size)
    size = min(size, task.num_variables)
    before: list[tuple[Any, ...]] = []
    for _ in range(60):
        state = rng.integers(low, high + 1)
        assert table.novelty(state) == novelty(tuple(state), before, size)
        if rng.random() < 0.3:
            table.add(state)
            before.append(tuple(state))


def test_real_values_are_new_by_the_hundredth_of_their_range(data: Any) -> None:
    task = load_task(data / "glider.jani")
    table = NoveltyTable(task, 1)
    table.add(np.array([50.0, 3.0]))
    assert table.novelty(np.array([50.2, 3.01])) == 2
    assert table.novelty(np.array([55.0, 3.0])) == 1


def test_the_filter_lets_only_new_combinations_into_the_pool() -> None:
    task = grid_task(8)
    pool = [state for state, _, _ in pool_of(task, novelty=1, starts=1)]
    for place in range(1, len(pool)):
        assert novelty(pool[place], pool[:place], 1) == 1
    assert len(pool) <= 15


def test_going_backward_finds_states_from_which_the_goal_can_be_reached() -> None:
    task = random_task(2, states=40)
    for state, _, _ in pool_of(task, Backward(Reached(task)), size=15):
        assert any(task.is_goal(np.array(s)) for s in reach(task, state, 40))


def test_a_task_without_a_reachable_goal_cannot_be_walked_backward(data: Any) -> None:
    task = load_task(data / "glider.jani", failure="height <= 0", goal="flown >= 30 and flown < 0")
    with pytest.raises(ConfigError, match="no goal state"):
        Backward(Reached(task, limit=10))


def test_perturbed_states_are_within_bounds_and_differ_in_few_variables(data: Any) -> None:
    task = load_task(data / "glider.jani", failure="height <= 0")
    rng = np.random.default_rng(0)
    state = task.initial.sample(1, rng)[0]
    for other in Perturb(task, most=1, offered=50).offers(state, rng):
        assert (other != state).sum() <= 1
        task.engine.pack(other.reshape(1, -1))  # raises when out of bounds


def test_perturbing_with_the_check_stays_among_reached_states() -> None:
    task = random_task(5, states=40)
    starts = task.initial.enumerate(100)[:2]
    few = load_task_with_starts(task, starts)
    reached = Reached(few)
    known = {tuple(row) for row in few.engine.unpack(reached.words).tolist()}
    assert known == {s for start in starts for s in reach(few, tuple(start.tolist()), 40)}
    checked = pool_of(few, Perturb(few, reached=reached), size=12)
    assert {state for state, _, _ in checked} <= known
    free = pool_of(few, Perturb(few), size=30)
    assert len(known) > 25 or not {state for state, _, _ in free} <= known


def load_task_with_starts(task: Task, starts: Any) -> Task:
    condition = " or ".join(f"s = {row[0]}" for row in starts.tolist())
    property_ = load_task_start(task, condition)
    return Task(task.model, property_)


def load_task_start(task: Task, condition: str) -> Any:
    from dataclasses import replace

    from safetest_gym.jani import read_start

    return replace(task.property, start=read_start(condition, task.model))


def test_a_bias_weighs_where_the_policy_struggles() -> None:
    task = grid_task(7)
    runs = Fuzzer(task, RandomPolicy(Interface.of(task), 1), max_steps=50).run(60)
    quality = weights("quality", runs)
    assert (quality[runs.ends != End.GOAL] == 0).all()
    assert (quality[runs.ends == End.GOAL] == runs.lengths[runs.ends == End.GOAL]).all()
    assert (weights("plan_length", runs) == runs.lengths).all()
    for run, detour, loops in zip(
        runs, weights("detour", runs), weights("loopiness", runs), strict=True
    ):
        changed = sum(a != b for a, b in zip(run.states[0], run.states[-1], strict=True))
        assert detour == len(run) / (1 + changed)
        near = sum(
            (run.states[i] != run.states[j]).sum() <= 1
            for i in range(len(run.states))
            for j in range(i - 1)
        )
        assert loops == near


def test_forward_offers_one_outcome_of_each_action() -> None:
    task = grid_task()
    state = np.array([2, 2])
    offers = Forward(task).offers(state, np.random.default_rng(0))
    assert len(offers) == task.applicable(state).sum()


@pytest.mark.parametrize(
    "options",
    [
        {"size": 0},
        {"walk": 0},
        {"novelty": 4},
        {"bias": "best"},
        {"starts": 0},
        {"seconds": math.nan},
        {"walks": -1},
    ],
)
def test_wrong_options_are_named(options: Any) -> None:
    with pytest.raises(ConfigError):
        PoolConfig(**options)
