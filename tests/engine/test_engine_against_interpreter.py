"""The machine code does what the interpreter does, on random models, outcome for outcome."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    random_examples,
    random_models,
)
from tests.oracles.small_models import (
    UNDEFINED,
    assign,
    automaton,
    binary,
    bounded,
    destination,
    edge,
    interpreter,
    less,
    plus,
    single,
)

pytestmark = pytest.mark.usefixtures("own_code_cache")

Answer = TypeVar("Answer")
Json = Any
Mode = Literal["label", "edge"]

ERROR = "error"
MAX_STATES = 25


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


X, Y = bounded("x", 5), bounded("y", 5)
T = {"name": "t", "type": "int", "transient": True, "initial-value": 0}
R = {"name": "r", "type": "real", "initial-value": 0}


def assigning(name: str, value: Json, index: int = 0, guard: Json = True) -> Json:
    """An edge with one assignment."""
    return edge(destination(assign(name, value, index)), guard=guard)


def pair(variables: list[Json], first: Json, second: Json) -> Interpreter:
    """Two automata with one edge each, which happen together."""
    return interpreter(variables, [automaton("A", first), automaton("B", second)])


SMALL = {
    "a guard without value beside a false one, combined through indices": pair(
        [X, Y], assigning("x", "y", 1, less("y", 0)), assigning("y", 3, 0, UNDEFINED)
    ),
    "probabilities that sum to 1 only as a product": pair(
        [X, Y],
        edge(destination(assign("x", "y", 1), probability=binary("/", plus(1, "x"), 2))),
        edge(
            destination(assign("y", 3, 0), probability=plus(1, "x")),
            destination(assign("y", 2, 0), probability=binary("-", 1, "x")),
        ),
    ),
    "probabilities that are constant within the bounds, but sum to 0.5": single(
        [X],
        edge(
            destination(probability={"op": "ite", "if": less("x", 9), "then": 0, "else": 0.5}),
            destination(probability=0.5),
        ),
    ),
    "a probability beyond 1 that is constant within the bounds": single(
        [X],
        edge(
            destination(probability={"op": "ite", "if": less("x", 9), "then": 1.5, "else": 0}),
            destination(probability={"op": "ite", "if": less("x", 9), "then": -0.5, "else": 1}),
        ),
    ),
    "one assigns what the variable has, the other something else": pair(
        [X], assigning("x", "x"), assigning("x", 2)
    ),
    "a reward on which the participants disagree": pair(
        [X, T], assigning("t", 1), assigning("t", 2)
    ),
    "a reward on which the participants of combined edges disagree": pair(
        [X, Y, T],
        edge(destination(assign("t", 1), assign("x", "y", 1))),
        edge(destination(assign("t", 2), assign("y", 3))),
    ),
    "two zeros": pair(
        [X, R], assigning("r", binary("*", "r", -1.0)), assigning("r", binary("*", "r", 1.0))
    ),
    "an edge that takes part in nothing": interpreter(
        [X],
        [automaton("A", edge(guard=UNDEFINED, action="b"), edge()), automaton("B", edge())],
    ),
    "a branch beyond 64 bits": single(
        [X], edge(guard=less(0, {"op": "ite", "if": less("x", 2), "then": 10**30, "else": "x"}))
    ),
}


@pytest.mark.parametrize("case", SMALL)
def test_small_models_behave_as_the_interpreter_says(case: str) -> None:
    twin = SMALL[case]
    task = Task(twin.model, PlanningProperty("none", None, None, None), "edge")
    for state in states_of(twin):
        compare_actions(task, twin, state, "edge")


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
