"""The public models beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.jani import (
    read_condition,
    read_goal,
    read_model,
    read_properties,
    read_start,
)
from safetest_gym.jani.document import load_document
from safetest_gym.jani.reporting import Report
from safetest_gym.jani.tree import PlanningProperty, StartCondition, StartValues


def test_every_public_model_is_read_without_an_error(shared: Path) -> None:
    constants = {
        case["file"]: case.get("constants", {})
        for case in json.loads((shared / "models" / "qvbs_cases.json").read_text("utf-8"))
    }
    count = 0
    for file in sorted((shared / "models").glob("*/*.jani")):
        data = load_document(file, Report()).data
        if "automata" in data:
            name = file.relative_to(shared / "models").as_posix()
            assert read_model(file, constants=constants.get(name)).automata
            count += 1
    assert count >= 60


def test_every_public_file_of_planning_properties_is_understood(shared: Path) -> None:
    for file in sorted((shared / "models" / "planning").glob("*.props.jani")):
        model = read_model(str(file).replace(".props", ""))
        found = read_properties(file, model)
        assert found
        for planning in found:
            assert isinstance(planning, PlanningProperty)
            assert planning.goal is not None
            assert planning.failure is not None
            assert planning.start is not None


def test_parts_that_come_as_bare_files_are_read(shared: Path) -> None:
    folder = shared / "models" / "planning"
    ball = read_model(folder / "bouncing_ball.jani")
    assert read_condition(folder / "bouncing_ball.safe.jani", ball).kind == "bool"
    assert isinstance(read_start(folder / "bouncing_ball.start.jani", ball), StartValues)
    assert isinstance(read_start(folder / "bouncing_ball.start_compact.jani", ball), StartCondition)
    objective = read_goal(folder / "bouncing_ball.objective.jani", ball)
    assert isinstance(objective, PlanningProperty)
    assert objective.goal is not None
    line = read_model(folder / "linetrack.jani")
    objective = read_goal(folder / "linetrack.goal.jani", line)
    assert isinstance(objective, PlanningProperty)
    assert objective.goal_reward is not None


@pytest.mark.parametrize("states", [1000])
def test_long_lists_of_start_states_are_complete(states: int, shared: Path) -> None:
    folder = shared / "models" / "planning"
    model = read_model(folder / "one_way_line_15_10_det.jani")
    (found,) = read_properties(folder / "one_way_line_15_10_det.props.jani", model)
    assert isinstance(found, PlanningProperty)
    assert isinstance(found.start, StartValues)
    assert len(found.start.states) == states
