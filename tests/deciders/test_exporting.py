"""What is exported means to Storm what it means to us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.deciders.exporting import export_standard
from safetest_gym.deciders.goal_reaching import export_goal_reaching
from safetest_gym.deciders.graph import build_graph
from safetest_gym.errors import ConfigError
from safetest_gym.task import Task, load_task

SMALL = [
    "blocksworld_4_3_nocost",
    "beluga_3_2",
    "one_way_line_5_10_det",
    "one_way_line_5_10_nod_nop",
    "two_way_line_4_10_det",
    "mars_mini_cap",
]


def _holds(document: Any, name: str) -> tuple[Any, NDArray[np.bool_]]:
    """Storm's model of an exported document, and where a property is exactly 0 or 1."""
    stormpy = pytest.importorskip("stormpy")
    (entry,) = (entry for entry in document["properties"] if entry["name"] == name)
    filtered = entry["expression"]
    symbol, bound = {"Pmin": ("≤", 0), "Pmax": ("≥", 1)}[filtered["values"]["op"]]
    filtered["values"] = {"op": symbol, "left": filtered["values"], "right": bound}
    parsed, properties = stormpy.parse_jani_model_from_string(json.dumps(document))
    formulas = {entry.get_name(): entry.get_raw_formula() for entry in properties}
    options = stormpy.BuilderOptions(list(formulas.values()))
    model = stormpy.build_model(parsed, options=options)
    holds = stormpy.model_checking(model, formulas[name]).get_truth_values_vector()
    return model, np.array([holds.get(s) for s in range(model.nr_states)])


def _open(models: Path, name: str, start: str | None = None) -> tuple[Any, Task]:
    model = models / "planning" / f"{name}.jani"
    properties = model.with_suffix(".props.jani")
    task = load_task(model, properties, start=start, action_mode="edge")
    return json.loads(model.read_text("utf-8-sig")), task


@pytest.mark.parametrize("name", SMALL)
def test_storm_finds_the_safe_states_of_an_exported_task(shared: Path, name: str) -> None:
    document, task = _open(shared / "models", name)
    graph = build_graph(task)
    model, safe = _holds(export_standard(document, task), "safe")
    assert model.nr_states == graph.num_states
    assert len(model.initial_states) == graph.num_initial
    assert np.count_nonzero(safe) == np.count_nonzero(graph.safe)
    initial = safe[list(model.initial_states)]
    assert np.count_nonzero(initial) == np.count_nonzero(graph.safe[: graph.num_initial])


@pytest.mark.parametrize("name", SMALL)
def test_the_artificial_goal_is_surely_reached_from_the_safe_states_only(
    shared: Path, name: str
) -> None:
    document, task = _open(shared / "models", name)
    graph = build_graph(task)
    model, safe = _holds(export_goal_reaching(document, task), "reach")
    initial = safe[list(model.initial_states)]
    assert len(initial) == graph.num_initial
    assert np.count_nonzero(initial) == np.count_nonzero(graph.safe[: graph.num_initial])


@pytest.mark.parametrize("form", [export_standard, export_goal_reaching])
def test_our_own_random_model_keeps_its_meaning(data: Path, form: Any) -> None:
    document = json.loads((data / "ferry.jani").read_text("utf-8"))
    task = load_task(document, data / "ferry.props.jani", action_mode="edge")
    graph = build_graph(task)
    name = "safe" if form is export_standard else "reach"
    model, safe = _holds(form(document, task), name)
    initial = safe[list(model.initial_states)]
    assert len(initial) == graph.num_initial
    assert np.count_nonzero(initial) == np.count_nonzero(graph.safe[: graph.num_initial])


def test_what_is_exported_can_be_read_again(data: Path) -> None:
    document = json.loads((data / "ferry.jani").read_text("utf-8"))
    task = load_task(document, data / "ferry.props.jani", action_mode="edge")
    exported = export_standard(document, task)
    again = load_task(exported, property="min_fail", action_mode="edge")
    assert build_graph(again, starts="default").num_states == build_graph(task).num_states
    assert [entry.name for entry in again.model.properties] == [
        "safe",
        "min_fail",
        "max_goal",
        "max_safe_goal",
    ]


def test_the_document_that_is_given_stays_as_it_is(data: Path) -> None:
    document = json.loads((data / "ferry.jani").read_text("utf-8"))
    before = json.dumps(document)
    task = load_task(document, data / "ferry.props.jani")
    export_standard(document, task)
    export_goal_reaching(document, task)
    assert json.dumps(document) == before


def test_a_start_that_leaves_the_location_open_is_refused(shared: Path) -> None:
    document, task = _open(shared / "models", "mars_mini_cap", start="rover_0_x = 0")
    with pytest.raises(ConfigError, match=r"leaves .* open"):
        export_standard(document, task)


def test_several_automata_have_no_goal_reaching_form(data: Path) -> None:
    document = json.loads((data / "handover.jani").read_text("utf-8"))
    task = load_task(document, constants={"N": 2}, failure="false")
    with pytest.raises(ConfigError, match="one automaton"):
        export_goal_reaching(document, task)
