"""Start states of the public planning models."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.jani import read_model, read_properties, read_start
from safetest_gym.jani.tree import Model, PlanningProperty, StartCondition, StartValues
from safetest_gym.starts import StartSet, default_starts, make_starts


@cache
def _read(shared: Path, model: str, properties: str) -> tuple[Model, tuple[PlanningProperty, ...]]:
    read = read_model(shared / "models" / model)
    found = read_properties(shared / "models" / properties, read)
    return read, tuple(p for p in found if isinstance(p, PlanningProperty))


def _starts(shared: Path, model: str, properties: str, kind: str) -> StartSet:
    read, found = _read(shared, model, properties)
    if kind == "default":
        return default_starts(read)
    wanted = StartValues if kind == "list" else StartCondition
    starts = [p.start for p in found if isinstance(p.start, wanted)]
    assert starts[0] is not None
    return make_starts(read.variables, starts[0])


def test_every_listed_case_has_exactly_its_number_of_start_states(shared: Path) -> None:
    cases = json.loads((shared / "models" / "planning_cases.json").read_text(encoding="utf-8"))
    wrong = []
    for case in cases:
        starts = _starts(shared, case["model"], case["properties"], case["start"])
        rows = starts.enumerate(10**6)
        if not starts.count() == len(rows) == case["start_states"]:
            wrong.append((case["model"], case["start"], starts.count()))
    assert not wrong


def test_every_start_of_every_property_can_be_drawn_from(shared: Path) -> None:
    folder = shared / "models" / "planning"
    for properties in sorted(folder.glob("*.props.jani")):
        model = f"planning/{properties.name.replace('.props', '')}"
        read, found = _read(shared, model, f"planning/{properties.name}")
        for prop in found:
            assert prop.start is not None
            starts = make_starts(read.variables, prop.start)
            drawn = starts.sample(50, np.random.default_rng(0))
            assert all(starts.contains(state) for state in drawn), properties.name


@pytest.mark.parametrize(
    ("model", "start"),
    [
        ("bouncing_ball", "bouncing_ball.start"),
        ("bouncing_ball", "bouncing_ball.start_compact"),
        ("linetrack", "linetrack.start"),
        ("inverted_pendulum", "start"),
    ],
)
def test_starts_in_files_of_their_own_can_be_drawn_from(
    shared: Path, model: str, start: str
) -> None:
    folder = shared / "models" / "planning"
    read = read_model(folder / f"{model}.jani")
    starts = make_starts(read.variables, read_start(folder / f"{start}.jani", read))
    drawn = starts.sample(50, np.random.default_rng(0))
    assert all(starts.contains(state) for state in drawn)


def test_the_icy_line_has_all_splits_of_its_packages(shared: Path) -> None:
    name = "planning/one_way_line_15_10_icy_park"
    starts = _starts(shared, f"{name}.jani", f"{name}.props.jani", "condition")
    assert starts.count() == 4 * 1307504  # free aux_vel; 15 packages over 10 places


@pytest.mark.slow
def test_a_million_states_of_the_icy_line_take_less_than_five_seconds(shared: Path) -> None:
    name = "planning/one_way_line_15_10_icy_park"
    starts = _starts(shared, f"{name}.jani", f"{name}.props.jani", "condition")
    begin = time.process_time()
    starts.sample(10**6, np.random.default_rng(0))
    assert time.process_time() - begin < 5
