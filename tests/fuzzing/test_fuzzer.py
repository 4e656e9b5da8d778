from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine import machine
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks import make_generator
from safetest_gym.errors import ActionError, ConfigError, EvaluationError, LimitError
from safetest_gym.fuzzing import End, FuzzBudget, Fuzzer, Run, Runs
from safetest_gym.policies import CallablePolicy, Interface, Policy, RandomPolicy, evaluate
from safetest_gym.task import Task, load_task
from tests.oracles.careful_policy import CarefulPolicy
from tests.oracles.fuzzing import SlowFuzzing, State
from tests.oracles.random_tasks import grid_task, random_task

WAYS = [
    ("uniform", 1),
    ("greedy", 1),
    ("greedy", 2),
    ("greedy", math.inf),
    ("weighted", 1),
    ("weighted", math.inf),
]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def policy_of(task: Task, seed: int = 0) -> RandomPolicy:
    return RandomPolicy(Interface.of(task), seed)


def slowly(policy: Policy, task: Task) -> CallablePolicy:
    """The same policy, but only Python can ask it."""

    def choose(values: dict[str, float], applicable: tuple[str, ...]) -> str:
        mask = np.array([[name in applicable for name in task.actions]])
        action = int(policy.actions(np.array([list(values.values())]), mask)[0])
        return task.actions[action]

    return CallablePolicy(choose, Interface.of(task))


def as_tuples(run: Run) -> list[State]:
    return [tuple(row) for row in run.states.tolist()]


def same(a: Runs, b: Runs) -> bool:
    names = ("words", "actions", "offsets", "ends", "indices")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize(("strategy", "lookahead"), WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_runs_follow_the_policy_and_end_for_the_reason_they_give(
    seed: int, strategy: Any, lookahead: float, mode: Any
) -> None:
    task = random_task(seed, mode=mode)
    policy = policy_of(task, seed)
    slow = SlowFuzzing(task, policy)
    fuzzer = Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, max_steps=60)
    for run in fuzzer.run(40):
        states = as_tuples(run)
        for step, action in enumerate(run.actions):
            assert action == slow.action(states[step])
            assert states[step + 1] in slow.outcomes(states[step])
            assert not slow.over(states[step])
        last = states[-1]
        assert (run.end is End.FAILING) == slow.failing(last)
        if run.end is End.GOAL:
            assert task.is_goal(np.array(last))
            assert not slow.failing(last)
        if run.end is End.DEADLOCK:
            assert slow.action(last) is None
        if run.end is End.LIMIT:
            assert len(run) == 60
        if run.end is End.EXHAUSTED:
            assert not slow.fails(last)
            assert slow.outcomes(last)
        if run.end is End.CYCLE:
            assert not slow.way_out(last, lookahead)
            assert lookahead == math.inf or not slow.has_choice(last, lookahead)


@pytest.mark.parametrize(("strategy", "lookahead"), WAYS)
@pytest.mark.parametrize("seed", range(8))
def test_every_continuation_is_one_that_the_algorithm_allows(
    seed: int, strategy: Any, lookahead: float
) -> None:
    task = random_task(seed, states=20)
    policy = policy_of(task, seed)
    slow = SlowFuzzing(task, policy)
    fuzzer = Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, max_steps=50)
    for run in fuzzer.run(30):
        states = as_tuples(run)
        assert explains(slow, states, strategy, lookahead, run.end)


def explains(
    slow: SlowFuzzing, states: list[State], strategy: str, lookahead: float, end: End
) -> bool:
    """Can the path be cut into continuations that the algorithm allows?"""
    places = {0}
    for place in range(len(states) - 1):
        if place not in places:
            continue
        allowed = set(slow.choices(states[place], strategy, lookahead))
        if states[place] in states[:place]:
            bad = slow.way_out(states[place], lookahead)
            allowed |= bad or slow.ahead(states[place], lookahead)
        if strategy != "uniform" and len(set(states[: place + 1])) <= place:  # it may wander
            allowed |= slow.outcomes(states[place])
        for later in range(place + 1, len(states)):
            inside = states[place + 1 : later]
            if states[later] in allowed and states[place] not in inside:
                places.add(later)
    return len(states) - 1 in places or end is End.LIMIT


@pytest.mark.parametrize("seed", range(10))
def test_greedy_search_without_limit_takes_exactly_the_path_of_the_definition(seed: int) -> None:
    task = random_task(seed, states=24)
    policy = policy_of(task, seed)
    slow = SlowFuzzing(task, policy)
    fuzzer = Fuzzer(task, policy, strategy="greedy", lookahead=math.inf, max_steps=400)
    for run in fuzzer.run(20):
        here = as_tuples(run)[0]
        visited: list[State] = []
        while not slow.over(here) and here not in visited:
            visited.append(here)
            found = slow.choices(here, "greedy", math.inf)
            if not found or any(map(slow.failing, found)):
                break
            assert len(found) == 1
            (here,) = found
        if visited and not slow.over(here) and slow.fails(here):
            assert run.end is End.FAILING
        if not slow.fails(as_tuples(run)[0]):
            assert run.end is not End.FAILING


@pytest.mark.parametrize("seed", range(12))
def test_a_search_without_limit_is_exhausted_only_where_the_policy_cannot_fail(seed: int) -> None:
    task = random_task(seed, states=20)
    slow = SlowFuzzing(task, policy_of(task, seed))
    states = task.initial.enumerate(100)
    fuzzer = Fuzzer(task, slow.policy, strategy="weighted", lookahead=math.inf, max_steps=200)
    for run in fuzzer.run_from(states):
        if run.end in (End.EXHAUSTED, End.DEADLOCK, End.GOAL, End.CYCLE):
            assert not slow.fails(as_tuples(run)[-1])
        if run.unsafe:
            assert slow.fails(as_tuples(run)[0])


def frequencies(fuzzer: Fuzzer, start: Any, runs: int) -> Counter[State]:
    states = np.repeat(np.array([start]), runs, axis=0)
    return Counter(as_tuples(run)[-1] for run in fuzzer.run_from(states))


@pytest.mark.parametrize(("strategy", "lookahead"), [("uniform", 1), ("weighted", 1)])
def test_chances_are_those_of_the_definition(strategy: Any, lookahead: float) -> None:
    task = random_task(11, states=30, outcomes=8)
    policy = policy_of(task)
    slow = SlowFuzzing(task, policy)
    fuzzer = Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, max_steps=1)
    tested = 0
    for start in task.initial.enumerate(100):
        wanted = slow.choices(tuple(start.tolist()), strategy, lookahead)
        if slow.over(tuple(start.tolist())) or len(wanted) < 3:
            continue
        if any(map(slow.failing, wanted)):
            continue
        found = frequencies(fuzzer, start, 4000)
        tested += 1
        for state, chance in wanted.items():
            spread = math.sqrt(4000 * chance * (1 - chance))
            assert abs(found[state] - 4000 * chance) <= 4.5 * spread
    assert tested >= 3


@pytest.mark.parametrize(("strategy", "lookahead"), WAYS)
def test_a_policy_that_only_python_can_ask_gives_the_same_runs(
    strategy: Any, lookahead: float
) -> None:
    task = random_task(3, states=40)
    fast = policy_of(task)
    one = Fuzzer(task, fast, strategy=strategy, lookahead=lookahead, max_steps=30)
    other = Fuzzer(task, slowly(fast, task), strategy=strategy, lookahead=lookahead, max_steps=30)
    assert same(one.run(50), other.run(50))


class _Wrong:
    """A policy that somebody wrote, who did not read what it must give."""

    def __init__(self, task: Task, answer: Callable[..., Any]) -> None:
        self.interface, self.actions = Interface.of(task), answer

    def bind(self, task: object) -> _Wrong:
        return self

    def native(self) -> None:
        return


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda states, masks: masks.argmin(axis=1), "are applicable"),
        (lambda states, masks: np.full(len(states), 99), "chose action 99"),
        (lambda states, masks: np.full(len(states), -1), "chose action -1"),
        (lambda states, masks: np.zeros(1, np.int64), "whole numbers"),
        (lambda states, masks: masks.argmax(axis=1) + 0.5, "float64"),
    ],
)
def test_a_policy_with_a_wrong_answer_does_not_pass_for_one_at_a_dead_end(
    answer: Callable[..., Any], message: str, data: Any
) -> None:
    task = load_task(data / "ferry.jani", data / "ferry.props.jani")
    policy: Any = _Wrong(task, answer)
    with pytest.raises(ActionError, match=message):
        Fuzzer(task, policy).run(20)
    with pytest.raises(ActionError, match=message):
        evaluate(policy, task, 3, 1)


def test_limits_beyond_all_runs_are_no_limits() -> None:
    task = grid_task()
    given: Any = {"strategy": "greedy", "budget": FuzzBudget(search=2**70)}
    far = Fuzzer(task, policy_of(task), lookahead=10**30, max_steps=10**30, **given)
    assert same(far.run(20), Fuzzer(task, policy_of(task), lookahead=math.inf, **given).run(20))


def test_a_distance_without_a_value_is_named() -> None:
    task = grid_task()
    name = task.variables[0].name
    fuzzer = Fuzzer(task, policy_of(task), strategy="greedy", distance=f"1 / ({name} - {name})")
    with pytest.raises(EvaluationError, match="division by zero"):
        fuzzer.run(5)


@pytest.mark.parametrize(("strategy", "lookahead"), WAYS)
def test_run_k_does_not_depend_on_what_is_run_before_it(strategy: Any, lookahead: float) -> None:
    task = grid_task(7)
    policy = policy_of(task, 2)

    def fuzzer() -> Fuzzer:
        return Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, seed=5, max_steps=100)

    whole = fuzzer().run(700)
    late = fuzzer().run(90, first=530)
    assert same(whole[530:620], late)


def test_a_graph_that_is_forgotten_on_the_way_changes_nothing() -> None:
    task = grid_task(9)
    policy = policy_of(task, 1)
    small = Fuzzer(task, policy, strategy="greedy", lookahead=3, budget=FuzzBudget(states=2))
    large = Fuzzer(task, policy, strategy="greedy", lookahead=3)
    assert same(small.run(600), large.run(600))


def test_a_distance_function_gives_the_runs_of_the_compiled_distance() -> None:
    task = grid_task(7)
    policy = policy_of(task, 3)

    def distance(states: Any) -> Any:
        return np.maximum(6 - states[:, 0], 0.0) + np.maximum(6 - states[:, 1], 0.0)

    assert [task.distance(s) for s in np.array([[2, 3], [6, 6]])] == [7.0, 0.0]
    runs = [
        Fuzzer(task, policy, strategy="weighted", lookahead=2, distance=given).run(100)
        for given in (None, distance, "max(0, 6 - x) + max(0, 6 - y)")
    ]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])


def test_a_wrong_distance_function_is_named() -> None:
    task = grid_task()
    fuzzer = Fuzzer(task, policy_of(task), strategy="greedy", distance=lambda states: states)
    with pytest.raises(ConfigError, match="one number per state"):
        fuzzer.run(1)


def test_every_start_state_is_run_once() -> None:
    task = grid_task()
    runs = Fuzzer(task, policy_of(task)).run_all()
    assert len(runs) == task.initial.count()
    assert len({tuple(run.start.tolist()) for run in runs}) == len(runs)


def test_too_many_start_states_to_run_them_all_are_an_error() -> None:
    task = grid_task()
    with pytest.raises(LimitError):
        Fuzzer(task, policy_of(task)).run_all(limit=3)


def test_a_task_that_cannot_fail_is_fuzzed_all_the_same(data: Any) -> None:
    task = load_task(data / "ferry.jani")
    runs = Fuzzer(task, policy_of(task), strategy="weighted", max_steps=20).run(10)
    assert runs.count(End.FAILING) == 0


def test_real_valued_tasks_are_fuzzed(data: Any) -> None:
    task = load_task(data / "glider.jani", failure="height <= 0")
    policy = policy_of(task)
    slow = SlowFuzzing(task, policy)
    for run in Fuzzer(task, policy, strategy="greedy", lookahead=math.inf).run(20):
        states = as_tuples(run)
        for step in range(len(run)):
            assert states[step + 1] in slow.outcomes(states[step])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "gready"}, "strategy must be one of"),
        ({"strategy": "greedy", "lookahead": 0}, "lookahead must be"),
        ({"strategy": "greedy", "lookahead": 1.5}, "lookahead must be"),
        ({"lookahead": 3}, "lookahead 1 only"),
        ({"max_steps": -1}, "max_steps"),
    ],
)
def test_wrong_options_are_named(options: Any, message: str) -> None:
    task = grid_task()
    with pytest.raises(ConfigError, match=message):
        Fuzzer(task, policy_of(task), **options)


def test_runs_survive_the_way_through_plain_data() -> None:
    task = grid_task()
    runs = Fuzzer(task, policy_of(task), strategy="greedy").run(30)
    back = Runs.of(task, [Run.from_dict(run.as_dict(task), task) for run in runs])
    assert same(runs, back)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": "lost"}, "no 'LOST' is known"),
        ({"actions": ["fly"]}, "no 'fly' is known"),
        ({"actions": []}, "states and 0 actions"),
        ({"states": [[1]]}, "shape"),
        ({"run": "first"}, "invalid literal"),
    ],
)
def test_plain_data_that_is_no_run_is_refused(change: dict[str, Any], message: str) -> None:
    task = grid_task()
    data = Fuzzer(task, policy_of(task)).run(1)[0].as_dict(task)
    with pytest.raises(ConfigError, match=message):
        Run.from_dict({**data, **change}, task)


def test_a_budget_of_seconds_keeps_the_first_runs() -> None:
    task = grid_task()
    budget = FuzzBudget(seconds=1e-9)
    few = Fuzzer(task, policy_of(task), budget=budget).run(5000)
    assert 0 < len(few) < 5000
    assert same(few, Fuzzer(task, policy_of(task)).run(len(few)))


def test_a_greedy_run_leaves_a_circle_where_its_search_sees_more_than_one_state() -> None:
    task, _ = open_task(make_generator("FlappyBird", {}), {})
    policy = CarefulPolicy.of(task, seed=0, holes=100)
    fuzzer = Fuzzer(task, policy, strategy="greedy", lookahead=1, max_steps=2000)
    assert fuzzer.run(20).count(End.FAILING) > 10
