"""Tasks: which property they take, what they accept as states and actions."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.engine.machine import Machine, load_machine
from safetest_gym.errors import (
    ActionError,
    ConfigError,
    EvaluationError,
    JaniError,
    StateError,
)
from safetest_gym.task import Task, load_task
from tests.envs.walk import walk_model, walk_properties
from tests.jani.small import binary, guarded, minimal_model, variable


def planning(reach: Any) -> dict[str, Any]:
    expression = {"op": "PA", "reach": {"op": "state-condition", "exp": reach}}
    return {"name": "p", "expression": expression}


def counting(lower: int | None, upper: int | None) -> Task:
    """A model that counts ``x`` up within these bounds."""
    bounds = {"lower-bound": lower, "upper-bound": upper}
    given = {key: bound for key, bound in bounds.items() if bound is not None}
    kind = {"kind": "bounded", "base": "int", **given}
    model = minimal_model(variables=[{"name": "x", "type": kind, "initial-value": lower or 0}])
    (destination,) = model["automata"][0]["edges"][0]["destinations"]
    destination["assignments"] = [{"ref": "x", "value": binary("+", "x", 1)}]
    return load_task(model)


@pytest.fixture(scope="module")
def walk() -> Task:
    return load_task(walk_model(), walk_properties())


def test_a_broken_planning_property_of_the_model_is_not_passed_over_in_silence() -> None:
    model = minimal_model(properties=[planning(binary("=", "u", 1))])
    with pytest.raises(ConfigError, match="'p' cannot be used: unknown identifier 'u'"):
        load_task(model)


def test_a_failure_condition_of_ones_own_makes_up_for_a_broken_property() -> None:
    model = minimal_model(properties=[planning(binary("=", "u", 1))])
    assert load_task(model, failure="x == 3").is_failing(np.array([3]))


def test_properties_without_a_planning_property_ask_which_one_is_meant() -> None:
    reach = {"op": "Pmax", "exp": {"op": "F", "exp": binary("=", "x", 3)}}
    properties: Any = [{"name": "q", "expression": reach}]
    with pytest.raises(ConfigError, match="0: q"):
        load_task(minimal_model(), properties)
    assert load_task(minimal_model(), properties, property="q").is_failing(np.array([3]))


def test_an_objective_replaces_goal_and_rewards_a_condition_only_the_goal() -> None:
    own = {"op": "objective", "goal": binary("=", "x", 1), "step-reward": "x"}
    found = {"name": "p", "expression": {"op": "PA", "objective": own}}
    model = minimal_model(properties=[found])
    assert load_task(model, goal="x == 2").property.step_reward is not None
    other = load_task(model, goal={"op": "objective", "goal": binary("=", "x", 3)})
    assert other.property.step_reward is None
    assert other.is_goal(np.array([3]))


@pytest.mark.parametrize("value", [None, [1], 1j, "here", np.float32(1.5), float("nan"), 2**63])
def test_a_state_refuses_what_is_no_value_of_its_variable(walk: Task, value: Any) -> None:
    with pytest.raises(StateError):
        walk.state({"x": value, "steps": 0})


def test_a_state_refuses_ints_of_any_length(walk: Task) -> None:
    with pytest.raises(StateError, match="an integer of 5001 digits"):
        walk.state({"x": 10**5000, "steps": 0})


@pytest.mark.parametrize(
    "states",
    [
        [["a", "b"]],
        [[None, 0]],
        [[1j, 0]],
        [[1], [1, 2]],
        [[2**70, 0]],
        np.array([[2**64 - 1, 0]], np.uint64),
        [[0.5, 0]],
        [[float("nan"), 0]],
    ],
)
def test_states_that_64_bit_numbers_cannot_be_are_refused(walk: Task, states: Any) -> None:
    with pytest.raises(StateError):
        walk.classify(states)


@pytest.mark.parametrize("actions", [[0], [0] * 9, 1, [0.5, 0.5], [[0], [0]], ["a", "b"]])
def test_stepping_needs_one_action_per_state(walk: Task, actions: Any) -> None:
    states = np.array([[3, 2], [3, 2]])
    with pytest.raises(ActionError, match="expected 2 actions"):
        walk.step_many(states, actions, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 2**100), (-(2**100), 2**100), (0, 2**63), (-(2**63) - 1, 9), (0, None)]
)
def test_bounds_beyond_64_bits_do_not_bind(lower: int, upper: int | None) -> None:
    task = counting(lower, upper)
    assert task.successors(np.array([5]))[0][1][0][1].tolist() == [6]
    if lower < 0:
        assert task.as_dict(np.array([INT_MIN])) == {"x": INT_MIN}


@pytest.mark.parametrize(("lower", "upper"), [(2**63, 2**64), (-(2**70), -(2**65)), (2**70, None)])
def test_bounds_with_no_64_bit_int_between_them_are_an_error(lower: int, upper: int | None) -> None:
    with pytest.raises(JaniError, match="no 64-bit int") as caught:
        counting(lower, upper)
    assert caught.value.path == "$.variables[0]"


def test_the_ends_of_64_bits_are_values() -> None:
    task = counting(INT_MAX - 1, INT_MAX)
    assert task.successors(np.array([INT_MAX - 1]))[0][1][0][1].tolist() == [INT_MAX]


@pytest.mark.parametrize(("operator", "holds"), [("<", True), ("=", False), ("≠", True)])
def test_a_real_is_compared_with_an_int_beyond_the_reals(operator: str, holds: bool) -> None:
    real = {"name": "x", "type": "real", "initial-value": 1.0}
    task = load_task(guarded(binary(operator, "x", 10**400), variables=[real]))
    assert bool(task.applicable(np.array([1.0]))[0]) is holds


def test_a_model_without_variables_has_one_state() -> None:
    task = load_task(minimal_model(variables=[]))
    assert task.initial.enumerate(2).shape == (1, 0)
    assert task.successors(np.zeros(0))[0][1][0][1].shape == (0,)


def test_a_model_without_edges_has_no_action() -> None:
    model = minimal_model(variables=[variable("x", 0, 1)])
    model["automata"][0]["edges"] = []
    assert load_task(model).successors(np.array([0])) == []


def test_large_ints_beside_reals_are_exact_in_error_messages() -> None:
    real = {"name": "r", "type": "real", "initial-value": 0.5}
    huge = {"name": "x", "type": "int", "initial-value": 0}
    model = guarded(
        binary("<", binary("/", 1, binary("-", 2**60 + 1, "x")), 10), variables=[real, huge]
    )
    (destination,) = model["automata"][0]["edges"][0]["destinations"]
    destination["assignments"] = [{"ref": "x", "value": 2**60 + 1}]
    task = load_task(model)
    (start,) = task.engine.pack(np.array([[0.5, 0.0]]))
    (after,) = task.engine.expand(start[None]).states
    assert task.engine.values(after) == (0.5, 2**60 + 1)
    with pytest.raises(EvaluationError, match=f"x={2**60 + 1}"):
        task.engine.expand(after[None])


def test_threads_that_need_the_code_at_once_share_one_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded, ready = [], threading.Barrier(2)

    def slowly(*arguments: Any) -> Machine:
        machine = load_machine(*arguments)
        loaded.append(machine)
        time.sleep(0.05)
        return machine

    monkeypatch.setattr("safetest_gym.engine.native.load_machine", slowly)
    engine = load_task(minimal_model()).engine

    def address() -> int:
        ready.wait()
        return engine.address("expand")

    with ThreadPoolExecutor(2) as pool:
        addresses = {found.result() for found in [pool.submit(address) for _ in range(2)]}
    assert len(loaded) == len(addresses) == 1


def test_a_condition_without_a_value_is_named_with_the_state() -> None:
    task = load_task(minimal_model(), failure="1 / x > 2")
    with pytest.raises(EvaluationError, match=r"in the failure condition, in state \(x=0\)"):
        task.is_failing(np.array([0]))
    states = task.engine.pack(np.array([[0]]))
    with pytest.raises(EvaluationError, match=r"in '2 / x', in state \(x=0\)"):
        task.evaluator(["x + 1", "2 / x"])(states)


def test_constants_are_given_by_name() -> None:
    with pytest.raises(ConfigError, match="constants"):
        load_task(minimal_model(), constants=[("N", 1)])  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("value", [2**53 + 1, 10**400])
def test_ints_that_doubles_cannot_hold_are_refused_beside_reals(value: int) -> None:
    real = {"name": "r", "type": "real", "initial-value": 0.5}
    whole = {"name": "x", "type": "int", "initial-value": 0}
    task = load_task(minimal_model(variables=[real, whole]))
    with pytest.raises(StateError):
        task.state({"r": 0.5, "x": value})
    with pytest.raises(StateError):
        task.classify(np.array([[0, min(value, 2**60 + 1)]]))
