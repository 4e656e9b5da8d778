"""Exploring the public models in machine code gives the counts that are known of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.engine.explore import Explorer
from safetest_gym.jani import read_model, read_properties
from safetest_gym.jani.tree import StartCondition
from safetest_gym.task import Task, load_task
from tests.conftest import SHARED

Json = Any


def _cases(name: str) -> list[Json]:
    path = SHARED / "models" / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _id(case: Json) -> str:
    constants = ",".join(f"{name}={value}" for name, value in case.get("constants", {}).items())
    return "-".join(
        (Path(case.get("file") or case["model"]).stem, constants or case.get("start", ""))
    )


@pytest.mark.parametrize("case", _cases("qvbs_cases.json"), ids=_id)
def test_a_public_model_has_exactly_the_listed_counts(case: Json, shared: Path) -> None:
    task = load_task(shared / "models" / case["file"], constants=case["constants"])
    explorer = Explorer(task, mode="edge")
    assert explorer.run()
    counts = explorer.counts()
    names = ("states", "choices", "transitions", "deadlocks", "initial_states")
    assert {name: getattr(counts, name) for name in names} == {name: case[name] for name in names}


def _bare_goal(case: Json, properties: Path) -> Json:
    """The goal as the list counts it: it leaves out one model's clause on locations."""
    if Path(case["model"]).stem != "mars_mini_cap":
        return None
    first = json.loads(properties.read_text(encoding="utf-8"))["properties"][0]
    return first["expression"]["objective"]["goal"]["exp"]


def _planning_task(case: Json, shared: Path) -> Task:
    model, file = (shared / "models" / case[key] for key in ("model", "properties"))
    properties = read_properties(file, read_model(model))
    conditions = [isinstance(getattr(one, "start", None), StartCondition) for one in properties]
    number = conditions.index(True) if case["start"] == "condition" else 0
    return load_task(model, file, property=number, goal=_bare_goal(case, file))


@pytest.mark.parametrize("case", _cases("planning_cases.json"), ids=_id)
def test_a_planning_model_has_exactly_the_listed_counts(case: Json, shared: Path) -> None:
    task = _planning_task(case, shared)
    explorer = Explorer(task, starts="default" if case["start"] == "default" else "all")
    assert explorer.run()
    counts = explorer.counts()
    found = {
        "states": counts.states,
        # Here, unlike in the other list, Storm's self-loops of deadlocks are counted.
        "choices": counts.choices + counts.deadlocks,
        "failing": counts.failing,
        "goal": counts.goal,
        "start_states": counts.initial_states,
    }
    assert found == {name: case[name] for name in found}
