from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from safetest_gym.envs.tasks.rovers import Rovers
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import Document
from tests.envs.tasks.equivalence import Published, counts, require_equivalent, space
from tests.envs.tasks.runs import (
    generated,
    loaded,
    require_same_tasks,
    walk,
)


def test_the_small_map_equals_the_published_model(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "mars_mini")
    starts = published.listed.starts(published.document)
    assert require_equivalent(Rovers.mars_mini(), published, starts) == 8349
    assert Document(Rovers.mars_mini().model()).actions == published.document.actions


def test_the_small_map_with_limits_equals_the_published_model(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "mars_mini_cap")
    starts = [published.document.state({})]
    assert require_equivalent(Rovers.mars_mini_cap(), published, starts) == 35304
    assert Document(Rovers.mars_mini_cap().model()).actions == published.document.actions


def test_the_small_map_has_the_known_counts() -> None:
    document, planning = generated(Rovers.mars_mini())
    assert counts(document, planning, [document.state({})]) == {
        "states": 8145,
        "choices": 19129,
        "failing": 5315,
        "goal": 55,
        "safe": 2830,
        "deadlocks_not_failing": 225,
        "start_states": 1,
        "start_states_safe": 1,
    }


def test_every_way_to_spread_the_samples_is_a_start() -> None:
    document, planning = generated(Rovers.mars_mini())
    # cells for the rover, two rocks, one soil; battery 4 to 10
    assert len(planning.starts(document)) == 4 * 10 * 4 * 7


@pytest.mark.parametrize("task", [Rovers(), Rovers.mars()])
def test_the_published_large_maps_have_their_known_shape(task: Rovers) -> None:
    document, planning = generated(task)
    names = [variable.name for variable in document.variables]
    extra = ["rover_0_x_n", "rover_0_y_n"] if task.objectives else []
    cells = [
        f"{kind}_on_cell_x{x}_y{y}"
        for x in range(3)
        for y in range(3)
        for kind in ("rocks", "soil")
    ]
    image = ["image_of_objective_x2_y2"] if task.objectives else []
    first = ["rover_0_x", "rover_0_y", "battery_rover_0", "rocks_on_rover_0", "soil_on_rover_0"]
    assert names == [*first, *extra, *cells, *image]
    battery = document.variables[2]
    assert (battery.lower, battery.upper, battery.initial) == (-8, 31, 30)
    assert {v.initial for v in document.variables if v.name.startswith("rocks_on_cell")} == {
        0,
        1,
        2,
    }
    assert document.function(planning.start)(document.state({"battery_rover_0": 6}))
    assert not document.function(planning.start)(document.state({"battery_rover_0": 5}))


@pytest.mark.parametrize(
    "task",
    [
        Rovers(),
        Rovers.mars(),
        Rovers.mars_mini_cap(),
        Rovers(fail_charge=0.2, fail_sample=0.5, objectives=((1, 0), (0, 0)), fail_image=0.9),
        Rovers(width=1, height=4, battery=3, rocks=((0, 3, 1),), soil=((0, 2, 7),)),
    ],
)
def test_random_runs_stay_within_the_bounds(task: Rovers) -> None:
    pair = generated(task)
    start = pair[0].state({})
    assert all(walk(pair, start, 200, seed) for seed in range(300))


def test_failures_are_an_empty_an_overloaded_battery_and_leaving_the_map() -> None:
    document, planning = generated(Rovers.mars_mini())
    failing = document.function(planning.failure)
    assert not failing(document.state({"battery_rover_0": 0}))
    assert failing(document.state({"battery_rover_0": -1}))
    assert failing(document.state({"battery_rover_0": 11}))
    assert failing(document.state({"rover_0_x": 2}))
    assert failing(document.state({"rover_0_y": -1}))


def test_a_load_beyond_the_limit_of_a_passage_breaks_the_rover() -> None:
    document, planning = generated(Rovers.mars())
    failing = document.function(planning.failure)
    for load, broken in ((2, False), (3, True)):
        state = document.state({"rover_0_x": 1, "rover_0_y": 2, "rocks_on_rover_0": load})
        [moving] = [o[0][1] for label, o in document.choices(state) if label == "up_rover_0"]
        [(label, outcomes)] = document.choices(moving)
        assert label in ("", None, "None")
        after = outcomes[0][1]
        assert (after[2] == -1) == broken
        # Going up from the top row leaves the map, so both fail; only one is broken.
        assert failing(after)


def test_a_cell_with_rock_and_soil_leaves_the_choice_open() -> None:
    document = Document(Rovers.mars_mini().model())
    state = document.state({"rocks_on_cell_x0_y0": 1, "soil_on_cell_x0_y0": 1})
    labels = [label for label, _ in document.choices(state)]
    assert labels.count("sample_rover_0") == 3


def test_failed_samples_only_cost_battery() -> None:
    document = Document(Rovers(fail_sample=0.25).model())
    state = document.state({"rover_0_x": 2})
    [outcomes] = [o for label, o in document.choices(state) if label == "sample_rover_0"]
    [failed] = [target for chance, target in outcomes if chance == 0.25]
    assert failed == (*state[:2], state[2] - 2, *state[3:])


def test_the_goal_is_reachable_on_a_small_map_with_limits() -> None:
    task = Rovers(width=2, height=1, battery=9, rocks=((1, 0, 1),), soil=((1, 0, 1),), carry=1)
    document, planning = generated(task)
    goal = document.function(planning.goal)
    assert any(goal(state) for state in space(document, [document.state({})]))


def test_name_tells_size_and_variant() -> None:
    assert Rovers().name == "rovers_3_3_b30_r3_s3"
    assert Rovers.mars().name == "rovers_3_3_b30_r3_s3_i1_c3"
    assert Rovers(fail_image=0.5).name == "rovers_3_3_b30_r3_s3_f0-0-0.5"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"width": 0}, "width"),
        ({"battery": 0}, "battery"),
        ({"rocks": ()}, "rocks"),
        ({"rocks": ((3, 0, 1),)}, "x in rocks"),
        ({"soil": ((0, 0, 0),)}, "soil on a cell"),
        ({"soil": ((0, 0, 1), (0, 0, 2))}, "soil names"),
        ({"objectives": ((0, 0, 1),)}, "objectives"),
        ({"passages": ((0, 0, "up", 1),)}, "carry"),
        ({"passages": ((0, 0, "north", 1),), "carry": 1}, "north"),
        ({"carry": -1}, "carry"),
        ({"fail_charge": 2}, "fail_charge"),
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rovers(**bad)


@pytest.mark.parametrize(
    ("name", "task"), [("mini", Rovers.mars_mini()), ("mini_cap", Rovers.mars_mini_cap())]
)
def test_the_package_reads_both_as_the_same_task(shared: Path, name: str, task: Rovers) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(folder / f"mars_{name}.jani", folder / f"mars_{name}.props.jani")
    assert require_same_tasks(loaded(task), theirs, 100, 100) == 10_000


@pytest.mark.parametrize("task", [Rovers.mars_mini(), Rovers.mars_mini_cap()])
def test_the_package_starts_at_the_choice_point_only(task: Rovers) -> None:
    assert loaded(task).initial.count() == 4 * 10 * 4 * 7
