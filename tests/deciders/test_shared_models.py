"""Counts of safe states on public models, which Storm has counted before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.cli.decide import DecideOptions
from safetest_gym.cli.failure import open_judged_subject
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.deciders.graph import build_graph
from safetest_gym.task import Task, load_task
from tests.conftest import SHARED

QUICK = 40_000
"""States that the quick part of the suite affords per case."""


def _cases(name: str) -> list[Any]:
    file = SHARED / "models" / name
    return json.loads(file.read_text("utf-8")) if file.is_file() else []


def _marked(case: Any) -> Any:
    name = f"{case['model'].removeprefix('planning/')} {case['start']}"
    marks = [pytest.mark.slow] if case["states"] > QUICK else []
    return pytest.param(case, id=name, marks=marks)


def _planning_task(models: Path, case: Any) -> Task:
    properties = models / case["properties"]
    property_ = None
    if case["start"] == "condition":
        listed = json.loads(properties.read_text("utf-8"))["properties"]
        conditions = [
            entry["name"]
            for entry in listed
            if entry["expression"]["start"].get("op") != "states-values"
        ]
        property_ = conditions[0]
    return load_task(models / case["model"], properties, property=property_, action_mode="edge")


@pytest.mark.parametrize("case", [_marked(case) for case in _cases("planning_cases.json")])
def test_safe_states_of_planning_models_are_storm_s(shared: Path, case: Any) -> None:
    task = _planning_task(shared / "models", case)
    if "mars_mini_cap" in case["model"]:
        # Storm's figures leave out the locations that the goal asks for.
        task = _with_bare_goal(shared / "models", case)
    starts: Any = "default" if case["start"] == "default" else "all"
    graph = build_graph(task, starts=starts)
    decider = make_decider("otf", task)
    verdicts = decider.decide_many(graph.states)
    assert np.array_equal(verdicts == Verdict.SAFE, graph.safe)
    assert graph.num_states == case["states"]
    assert int(graph.goal.sum()) == case["goal"]
    assert int(graph.safe.sum()) == case["safe"]
    assert int(graph.safe[: graph.num_initial].sum()) == case["start_states_safe"]


def _with_bare_goal(models: Path, case: Any) -> Task:
    properties = models / case["properties"]
    (entry, *_) = json.loads(properties.read_text("utf-8"))["properties"]
    goal = {"op": "state-condition", "exp": entry["expression"]["objective"]["goal"]["exp"]}
    return load_task(models / case["model"], properties, goal=goal, action_mode="edge")


def test_a_goal_s_locations_count(shared: Path) -> None:
    planning = shared / "models" / "planning"
    task = load_task(
        planning / "mars_mini_cap.jani", planning / "mars_mini_cap.props.jani", action_mode="edge"
    )
    graph = build_graph(task, starts="default")
    assert int(graph.safe.sum()) == 13730


def _properties() -> list[Any]:
    found = []
    for case in _cases("qvbs_cases.json"):
        for entry in case["qualitative"] if case["type"] == "mdp" else []:
            if entry.get("Pmin0") is not None:
                constants = ",".join(f"{k}={v}" for k, v in case["constants"].items())
                name = f"{case['file'].removeprefix('qvbs/')} {constants} {entry['name']}"
                marks = [pytest.mark.slow] if case["states"] > QUICK else []
                found.append(pytest.param(case, entry, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("case", "entry"), _properties())
def test_states_that_can_avoid_a_target_are_those_where_storm_s_pmin_is_0(
    shared: Path, case: Any, entry: Any
) -> None:
    constants = [f"{name}={str(value).lower()}" for name, value in case["constants"].items()]
    options = DecideOptions(
        model=shared / "models" / case["file"],
        constants=constants,
        failure_property=entry["name"],
        mode="edge",
    )
    task = open_judged_subject(options).task
    graph = build_graph(task)
    assert graph.num_states == case["states"]
    assert int(graph.safe.sum()) == entry["Pmin0"]
    verdicts = make_decider("otf", task).decide_many(graph.states)
    assert np.array_equal(verdicts == Verdict.SAFE, graph.safe)
