"""The machine code does what the interpreter does, on random models, outcome for outcome."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safetest_gym.engine import machine
from safetest_gym.engine.interpreter import STEP, Interpreter, State
from safetest_gym.errors import EvaluationError, JaniError
from safetest_gym.jani import read_condition, read_model
from safetest_gym.jani.tree import Expression, PlanningProperty, Value, Variable
from safetest_gym.task import Task
from tests.oracles.engine_adapter import Actions, as_state, as_vector, engine_actions
from tests.oracles.exploration import reachable
from tests.oracles.random_models import (
    TAME,
    WILD,
    WILD_REAL,
    Profile,
    RandomModel,
    random_models,
)

Answer = TypeVar("Answer")
Mode = Literal["label", "edge"]

ERROR = "error"
MAX_STATES = 25


def random_examples(number: int) -> settings:
    """Hypothesis settings for whole models, which are large and slow as examples go."""
    return settings(max_examples=number, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the code of random models out of the user's cache."""
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def answer(question: Callable[[], Answer]) -> Answer | str:
    """The answer, or `ERROR` if there is none."""
    try:
        return question()
    except EvaluationError:
        return ERROR


def compare(model: RandomModel, mode: Mode) -> None:
    """Everything that both can be asked, in reachable and in arbitrary states."""
    try:
        tree = read_model(model.document, constants=model.constants)
        failure, goal = read_condition(model.failure, tree), read_condition(model.goal, tree)
    except JaniError:
        return  # an expression that has no value in any state: found when the model is read
    task = Task(tree, PlanningProperty("random", goal, failure, None), mode)
    interpreter = Interpreter(tree)
    for state in states_of(interpreter):
        compare_actions(task, interpreter, state, mode)
        compare_conditions(task, interpreter, state, failure, goal)


def compare_actions(task: Task, interpreter: Interpreter, state: State, mode: Mode) -> None:
    """Actions, outcomes, masks and random steps."""
    expected = answer(lambda: numbered(interpreter, state, mode))
    found = answer(lambda: engine_actions(task, state))
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected, interpreter.describe(state)
        return
    applicable = [action for action, _ in expected]
    assert [action for action, _ in found] == applicable
    for (_, outcomes), (_, wanted) in zip(found, expected, strict=True):
        compare_outcomes(outcomes, wanted)
    vector = as_vector(task, state)
    assert np.flatnonzero(task.applicable(vector)).tolist() == applicable
    assert np.flatnonzero(task.applicable_many(vector[None])[0]).tolist() == applicable
    repeated = np.repeat(vector[None], 4, axis=0)
    for action, wanted in expected:
        after = task.step_many(repeated, np.full(4, action), np.random.default_rng(0))
        for successor in after:
            assert any(same_state(as_state(task, successor), known) for _, known in wanted)


def numbered(interpreter: Interpreter, state: State, mode: Mode) -> Actions:
    """The interpreter's actions by the numbers that the task gives them."""
    labels = interpreter.composition.labels
    return [
        (
            0
            if choice.label == STEP
            else labels.index(choice.label)
            if mode == "label"
            else choice.edges[0],
            list(choice.outcomes),
        )
        for choice in interpreter.actions(state, mode)
    ]


def compare_outcomes(found: list[tuple[float, State]], expected: list[tuple[float, State]]) -> None:
    """The same outcomes; their order may differ where several edges share an action."""
    assert len(found) == len(expected)
    for (probability, after), (wanted, successor) in zip(
        sorted(found, key=_order), sorted(expected, key=_order), strict=True
    ):
        assert same_state(after, successor)
        assert math.isclose(probability, wanted, rel_tol=1e-12)


def _order(outcome: tuple[float, State]) -> tuple[State, float]:
    return outcome[1], outcome[0]


def same_state(left: State, right: State) -> bool:
    """Equal, but for the last bits of reals and of what vectors of reals hold."""
    return all(
        a == b if abs(a) < 2**53 and isinstance(a, int) else math.isclose(a, b, rel_tol=1e-12)
        for a, b in zip(left, right, strict=True)
    )


def compare_conditions(
    task: Task, interpreter: Interpreter, state: State, failure: Expression, goal: Expression
) -> None:
    """Failing, goal, distance."""
    vector = as_vector(task, state)
    fails = answer(lambda: interpreter.holds(failure, state))
    wins = answer(lambda: interpreter.holds(goal, state))
    found = answer(lambda: int(task.classify(vector[None])[0]))
    if ERROR in (fails, wins):
        assert found == ERROR
    else:
        assert found == bool(fails) + 2 * bool(wins)
        assert task.is_failing(vector) == fails
        assert task.is_goal(vector) == wins
    expected = interpreter.distance(failure, state)
    assert math.isclose(task.distance(vector), expected, rel_tol=1e-12)


def states_of(interpreter: Interpreter) -> list[State]:
    """Some reachable states, and some that need not be."""
    rng = random.Random(0)
    variables = interpreter.model.variables
    arbitrary = [
        tuple(arbitrary_value(variable, rng) for variable in variables) for _ in range(MAX_STATES)
    ]
    starts = interpreter.initial_states()[:5]
    found = reachable(interpreter, starts, MAX_STATES, past_errors=True)
    # Vectors of reals hold ints up to 2**53 only.
    return [
        state
        for state in dict.fromkeys(itertools.chain(found[:MAX_STATES], arbitrary))
        if all(abs(value) < 2**53 for value in state)
    ]


def arbitrary_value(variable: Variable, rng: random.Random) -> Value:
    """Some value within the bounds."""
    if variable.kind == "bool":
        return rng.random() < 0.5
    lower = -5 if variable.lower is None else variable.lower
    upper = 5 if variable.upper is None else variable.upper
    if variable.kind == "real":
        return rng.choice((float(lower), float(upper), rng.uniform(lower, upper)))
    return rng.randint(int(lower), int(upper))


modes = st.sampled_from(("label", "edge"))


@random_examples(40)
@given(random_models(WILD), modes)
def test_random_models_behave_as_the_interpreter_says(model: RandomModel, mode: Mode) -> None:
    compare(model, mode)


@random_examples(40)
@given(random_models(WILD_REAL), modes)
def test_random_models_with_reals_behave_as_the_interpreter_says(
    model: RandomModel, mode: Mode
) -> None:
    compare(model, mode)


@random_examples(20)
@given(random_models(TAME), modes)
def test_random_models_without_errors_behave_as_the_interpreter_says(
    model: RandomModel, mode: Mode
) -> None:
    compare(model, mode)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [WILD, WILD_REAL, TAME], ids=["wild", "real", "tame"])
@random_examples(800)
@given(data=st.data(), mode=modes)
def test_many_random_models_behave_as_the_interpreter_says(
    profile: Profile, data: st.DataObject, mode: Mode
) -> None:
    compare(data.draw(random_models(profile)), mode)
