"""Evaluations agree with a plain exploration, and tell apart how runs end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.errors import ActionError, ConfigError, StartError
from safetest_gym.policies import (
    CallablePolicy,
    EvaluationConfig,
    Interface,
    MlpPolicy,
    Policy,
    RandomPolicy,
    TablePolicy,
    evaluate,
)
from safetest_gym.policies.runs import ENDS
from safetest_gym.task import Task, load_task
from tests.jani.small import minimal_model
from tests.oracles.policies import random_network
from tests.oracles.policy_graph import policy_graph


def _task(data: Path, name: str = "ferry", **options: Any) -> Task:
    properties = data / f"{name}.props.jani"
    return load_task(data / f"{name}.jani", properties if properties.exists() else None, **options)


class Interpreted:
    """A policy without its native form."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.interface = policy.interface

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        return self._policy.actions(states, applicable)

    def bind(self, task: Any) -> Interpreted:
        return Interpreted(self._policy.bind(task))

    def native(self) -> None:
        return None


def _tasks(data: Path) -> list[Task]:
    ferry = _task(data)
    edges = _task(data, action_mode="edge")
    die = _task(data, "die", failure="face == 3", goal="face == 6")
    return [ferry, edges, die]


def test_unsafe_and_arriving_starts_are_those_of_a_plain_exploration(data: Path) -> None:
    seen = set()
    for task in _tasks(data):
        for seed in range(12):
            policy = RandomPolicy(Interface.of(task), seed)
            result = evaluate(policy, task, 50, 5)
            graph = policy_graph(policy, task, result.starts)
            starts = [tuple(start) for start in result.starts.tolist()]
            failing, goal = graph.can_reach("failing"), graph.can_reach("goal")
            assert result.unsafe.tolist() == [start in failing for start in starts]
            assert result.arrives.tolist() == [start in goal for start in starts]
            assert result.exact.all()
            assert result.num_states == len(graph.kind)
            seen |= {*result.unsafe.tolist()} | {f"goal {a}" for a in result.arrives.tolist()}
    assert seen == {True, False, "goal True", "goal False"}


def test_rates_are_the_chances_of_the_markov_chain(data: Path) -> None:
    for task in _tasks(data):
        for seed in range(3):
            policy = RandomPolicy(Interface.of(task), seed)
            result = evaluate(policy, task, 50, 4000, config=EvaluationConfig(step_limit=60))
            graph = policy_graph(policy, task, result.starts)
            for end in ("goal", "failing", "dead end"):
                chance = graph.probability(end, 60)
                wanted = np.array([chance[tuple(start)] for start in result.starts.tolist()])
                found = result.counts[:, ENDS.index(end)] / 4000
                assert np.abs(found - wanted).max() < 0.04


def test_a_policy_called_from_python_gives_exactly_the_same_evaluation(data: Path) -> None:
    for task in _tasks(data):
        policy = RandomPolicy(Interface.of(task), 3)
        native, called = (
            evaluate(one, task, 50, 40, config=EvaluationConfig(step_limit=100))
            for one in (policy, Interpreted(policy))
        )
        for name in ("counts", "steps", "unsafe", "arrives", "exact"):
            assert (getattr(native, name) == getattr(called, name)).all()


def test_results_do_not_depend_on_threads(data: Path) -> None:
    task = _task(data, "glider")
    starts = task.initial.sample(300, np.random.default_rng(0))
    policy = RandomPolicy(Interface.of(task), 1)
    one, three = (
        evaluate(policy, task, starts, 3, config=EvaluationConfig(threads=n, max_states=0))
        for n in (1, 3)
    )
    assert (one.counts == three.counts).all()
    assert (one.steps == three.steps).all()


def test_what_cannot_be_exhausted_is_sampled_and_said_so(data: Path) -> None:
    task = _task(data, "glider")
    policy = RandomPolicy(Interface.of(task), 1)
    result = evaluate(policy, task, 20, 5, config=EvaluationConfig(max_states=3000))
    assert 0 < result.exact.sum() < 20
    assert "at least" in result.describe()
    assert "not seen at goal" in result.describe()


def test_without_states_to_exhaust_everything_is_sampled(data: Path) -> None:
    task = _task(data)
    result = evaluate(
        RandomPolicy(Interface.of(task), 5), task, config=EvaluationConfig(max_states=0)
    )
    assert not result.exact.any()
    assert "sampled only" in result.describe()


def test_all_start_states_together_leave_nothing_to_chance(data: Path) -> None:
    task = _task(data)
    rate = evaluate(RandomPolicy(Interface.of(task), 5), task, 100, 5).unsafe_rate
    assert rate.low == rate.value == rate.high


def test_a_policy_that_goes_round_for_ever_is_seen_to(data: Path) -> None:
    task = _task(data, action_mode="edge")
    result = evaluate(RandomPolicy(Interface.of(task), 0), task, 10, 7)
    assert result.end_rate("cycle").value == 1
    assert result.never_arrives_rate.value == 1
    assert "starts never at goal 100.0 %" in result.describe()


def test_a_table_that_misses_a_state_is_an_error_that_names_it(data: Path) -> None:
    task = _task(data)
    start = task.initial.enumerate(10)[:1]
    action = task.actions[int(np.flatnonzero(task.applicable(start[0]))[0])]
    policy = TablePolicy.from_dict({tuple(start[0].tolist()): action}, Interface.of(task))
    with pytest.raises(ActionError, match=r"no applicable action in \{'guests'"):
        evaluate(policy, task, start, 1)


def test_policies_are_bound_to_the_task(data: Path) -> None:
    task = _task(data)
    backwards = Interface(("water", "guests"), task.actions[::-1])
    network = random_network(np.random.default_rng(0), (2, 4, 3))
    loose = MlpPolicy(network.layers, backwards)
    bound = loose.bind(task)
    loose_result, bound_result = (evaluate(one, task, 10, 5) for one in (loose, bound))
    assert (loose_result.counts == bound_result.counts).all()


def test_a_python_function_can_be_evaluated(data: Path) -> None:
    task = _task(data)
    policy = CallablePolicy(lambda state, applicable: applicable[0], Interface.of(task))
    assert evaluate(policy, task, 10, 3).counts.sum() == 9


def test_start_states_of_a_wrong_shape_are_refused(data: Path) -> None:
    task = _task(data)
    with pytest.raises(StartError, match="shape"):
        evaluate(RandomPolicy(Interface.of(task)), task, np.zeros(4))


@pytest.mark.parametrize(
    "options",
    [
        {"step_limit": 0},
        {"max_states": -1},
        {"threads": 0},
        {"step_limit": 2.5},
        {"seed": -1},
        {"seed": 2**63},
    ],
)
def test_impossible_budgets_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at least"):
        EvaluationConfig(**options)


def test_no_runs_are_refused(data: Path) -> None:
    task = _task(data)
    with pytest.raises(ConfigError, match="runs_per_start"):
        evaluate(RandomPolicy(Interface.of(task)), task, 10, 0)


def test_the_number_of_starts_may_be_one_of_numpy(data: Path) -> None:
    task = _task(data)
    policy = RandomPolicy(Interface.of(task))
    number: Any = np.int64(2)
    assert len(evaluate(policy, task, number, 3).starts) == 2
    with pytest.raises(ConfigError, match="starts must be an integer"):
        evaluate(policy, task, 2.5, 3)  # type: ignore[arg-type]  # that is the point


def test_a_task_without_start_states_cannot_be_evaluated() -> None:
    task = load_task(minimal_model(**{"restrict-initial": {"exp": False}}))
    with pytest.raises(StartError, match="empty"):
        evaluate(RandomPolicy(Interface.of(task)), task, 5, 3)


@pytest.mark.slow
def test_a_network_on_the_published_line_gives_the_same_in_python(shared: Path) -> None:
    folder = shared / "models" / "planning"
    name = "one_way_line_15_10_icy_park"
    task = load_task(folder / f"{name}.jani", folder / f"{name}.props.jani")
    layers = random_network(np.random.default_rng(0), (15, 64, 64, 6)).layers
    policy = MlpPolicy(layers, Interface.of(task))
    starts = task.initial.sample(300, np.random.default_rng(0))
    native, called = (evaluate(one, task, starts, 10) for one in (policy, Interpreted(policy)))
    assert (native.counts == called.counts).all()
    assert (native.unsafe == called.unsafe).all()
    assert native.num_states == called.num_states
