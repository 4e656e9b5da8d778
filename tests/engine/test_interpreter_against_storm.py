"""The interpreter and Storm agree on what is reachable, on random and on public models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, reject

from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.jani import read_model, read_properties
from safetest_gym.jani.tree import PlanningProperty, StartValues, Variable
from tests.conftest import SHARED
from tests.oracles.exploration import explore, reachable
from tests.oracles.random_models import TAME, RandomModel, random_examples, random_models
from tests.oracles.storm import StormRefusal, Valuation, explore_with_storm, storm_is_missing

Json = Any

needs_storm = pytest.mark.skipif(storm_is_missing(), reason="stormpy is not installed")


def compare_with_storm(model: RandomModel) -> None:
    """Counts and reachable valuations are the same."""
    interpreter = Interpreter(read_model(model.document, constants=model.constants))
    starts = interpreter.initial_states()
    assume(starts)  # Storm wants an initial state
    ours = explore(interpreter, limit=2000)
    assume(ours.states < 2000)
    try:
        theirs, valuations = explore_with_storm(model.document, model.constants)
    except StormRefusal:  # it cannot evaluate every expression
        reject()
    assert ours == theirs
    names = [_storm_name(variable) for variable in interpreter.model.variables]
    # Storm leaves out variables that never change and counts locations that are alone.
    known = {name for name, _ in next(iter(valuations))}.intersection(names)
    assert _only(known, valuations) == {
        tuple(
            sorted(
                (name, int(value))
                for name, value in zip(names, state, strict=True)
                if name in known
            )
        )
        for state in reachable(interpreter, starts, 2000)
    }


def _only(known: set[str], valuations: frozenset[Valuation]) -> set[Valuation]:
    return {
        tuple((name, value) for name, value in valuation if name in known)
        for valuation in valuations
    }


def _storm_name(variable: Variable) -> str:
    if variable.locations:
        return "_loc_" + variable.name.removesuffix(".location")
    if variable.name.startswith("y"):  # local variable y0 of automaton A0
        return f"A{variable.name[1:]}_{variable.name}"
    return variable.name


@needs_storm
@random_examples(60)
@given(random_models(TAME))
def test_random_models_have_the_states_that_storm_finds(model: RandomModel) -> None:
    compare_with_storm(model)


@pytest.mark.slow
@needs_storm
@random_examples(1000)
@given(random_models(TAME))
def test_many_random_models_have_the_states_that_storm_finds(model: RandomModel) -> None:
    compare_with_storm(model)


def _cases(name: str, limit: int) -> list[Json]:
    path = SHARED / "models" / name
    if not path.is_file():
        return []
    return [case for case in json.loads(path.read_text()) if case["states"] <= limit]


def _case_id(case: Json) -> str:
    constants = ",".join(f"{name}={value}" for name, value in case.get("constants", {}).items())
    start = case.get("start", "")
    return f"{Path(case.get('file') or case['model']).stem}-{constants}{start}"


@pytest.mark.parametrize("case", _cases("qvbs_cases.json", 1200), ids=_case_id)
def test_public_models_have_the_counts_that_storm_finds(case: Json, shared: Path) -> None:
    model = read_model(shared / "models" / case["file"], constants=case["constants"])
    found = explore(Interpreter(model))
    expected = {name: case[name] for name in vars(found)}
    assert vars(found) == expected


@pytest.mark.slow
@pytest.mark.parametrize("case", _cases("qvbs_cases.json", 6000), ids=_case_id)
def test_larger_public_models_have_the_counts_that_storm_finds(case: Json, shared: Path) -> None:
    test_public_models_have_the_counts_that_storm_finds(case, shared)


def compare_planning_case(case: Json, shared: Path) -> None:
    """The whole space, not cut at failing or goal states, has the counts of ``case``."""
    model = read_model(shared / "models" / case["model"])
    task = read_properties(shared / "models" / case["properties"], model)[0]
    assert isinstance(task, PlanningProperty)
    assert task.failure is not None
    assert task.goal is not None
    interpreter = Interpreter(model)
    starts = interpreter.initial_states()
    if case["start"] == "list":
        assert isinstance(task.start, StartValues)
        starts = task.start.states
    states = reachable(interpreter, starts, 10_000)
    failing = {state for state in states if interpreter.holds(task.failure, state)}
    choices = {state: interpreter.choices(state) for state in states}
    assert {
        "states": len(states),
        # Here, unlike in the other list, Storm's self-loops of deadlocks are counted.
        "choices": sum(max(1, len(enabled)) for enabled in choices.values()),
        "failing": len(failing),
        "goal": sum(interpreter.holds(task.goal, state) for state in states),
        "deadlocks_not_failing": sum(not choices[state] for state in choices.keys() - failing),
        "start_states": len(set(starts)),
    }.items() <= case.items()
    for state in states:
        assert (interpreter.distance(task.failure, state) == 0) == (state in failing)


def _planning(limit: int) -> list[Json]:
    return [case for case in _cases("planning_cases.json", limit) if case["start"] != "condition"]


@pytest.mark.parametrize("case", _planning(400), ids=_case_id)
def test_planning_models_have_the_counts_that_storm_finds(case: Json, shared: Path) -> None:
    compare_planning_case(case, shared)


@pytest.mark.slow
@pytest.mark.parametrize("case", _planning(4000), ids=_case_id)
def test_larger_planning_models_have_the_counts_that_storm_finds(case: Json, shared: Path) -> None:
    compare_planning_case(case, shared)
