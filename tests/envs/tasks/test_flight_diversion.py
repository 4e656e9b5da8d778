from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from safetest_gym.envs.tasks.flight_diversion import FlightDiversion
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import State
from tests.envs.tasks.equivalence import Published
from tests.envs.tasks.runs import (
    anywhere,
    generated,
    loaded,
    require_same_runs,
    require_same_starts,
    require_same_tasks,
    sampled,
    walk,
)


def test_runs_equal_those_of_the_published_model(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "flight_diversion_5_5")
    ours, theirs = generated(FlightDiversion()), (published.document, published.condition)
    starts = published.listed.starts(theirs[0]) + sampled(ours, 200, 0)
    assert require_same_runs(ours, theirs, starts, 10) > 1500
    wild = anywhere(ours[0], 4000, 0)
    require_same_runs(ours, theirs, wild, 1)
    require_same_starts(ours, theirs, wild + starts)


def test_on_a_face_of_the_box_flying_and_stopping_are_both_possible() -> None:
    document, _ = generated(FlightDiversion())
    state = document.state({"pos_x": 4, "vel_x": 0})
    targets = [
        outcomes[0][1] for label, outcomes in document.choices(state) if label == "accelerate_x"
    ]
    assert sorted(target[0] for target in targets) == [4, 5]


@pytest.mark.parametrize(("crash", "failing"), [(False, False), (True, True)])
def test_the_border_is_a_crash_only_when_asked(crash: bool, failing: bool) -> None:
    document, planning = generated(FlightDiversion(oob_crash=crash))
    state = document.state({"pos_x": 4.5, "vel_x": 1})
    [(_, outcomes)] = [c for c in document.choices(state) if c[0] == "accelerate_x"]
    assert bool(document.function(planning.failure)(outcomes[0][1])) == failing
    assert outcomes[0][1][0] == 4.5


def test_an_empty_tank_fails_even_at_the_goal() -> None:
    document, planning = generated(FlightDiversion())
    state = document.state({"fuel": 0, "pos_x": 1, "pos_y": 0, "pos_z": -4})
    assert document.function(planning.failure)(state)
    assert document.function(planning.goal)(state)


def test_some_start_reaches_the_goal_with_fuel_left() -> None:
    document, planning = generated(FlightDiversion())
    failing, goal = document.function(planning.failure), document.function(planning.goal)
    layer: set[State] = {document.state({"pos_x": 0, "pos_y": 0, "pos_z": 0})}
    for _ in range(6):
        layer = {o[0][1] for state in layer for _, o in document.choices(state)}
        if any(goal(state) and not failing(state) for state in layer):
            return
    pytest.fail("the goal is out of reach")


@pytest.mark.parametrize(
    "task",
    [
        FlightDiversion(oob_crash=True),
        FlightDiversion(box=((0, 20), (0, 20), (0, 10)), fuel=30, speed=2),
    ],
)
def test_random_runs_stay_within_the_bounds(task: FlightDiversion) -> None:
    pair = generated(task)
    assert all(walk(pair, start, 40, 0) for start in sampled(pair, 100, 1))


def test_name_tells_the_size_and_what_is_unusual() -> None:
    assert FlightDiversion().name == "flight_diversion_5_5"
    wide = FlightDiversion(box=((0, 20), (0, 20), (0, 10)), fuel=9, oob_crash=True)
    assert wide.name == "flight_diversion_10_5_fuel9_crash"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"fuel": 0}, "fuel"),
        ({"speed": 1.5}, "speed"),
        ({"box": ((0, 1), (0, 1))}, "box"),
        ({"box": ((0, 1), (1, 0), (0, 1))}, "box along y"),
        ({"goals": (((0, 1), (0, 1), 3),)}, r"goals\[0\] along z"),
        ({"danger": 3}, "danger"),
        ({"danger": (((0, "a"), (0, 1), (0, 1)),)}, r"danger\[0\] along x"),
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FlightDiversion(**bad)


def test_the_package_reads_both_as_the_same_task(shared: Path) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(
        folder / "flight_diversion_5_5.jani", folder / "flight_diversion_5_5.props.jani", property=1
    )
    assert require_same_tasks(loaded(FlightDiversion()), theirs, 100, 100) == 10000
