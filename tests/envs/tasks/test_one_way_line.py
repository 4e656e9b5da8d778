from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import pytest

from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import ConfigError
from tests.envs.tasks.document import Document, State
from tests.envs.tasks.equivalence import FIGURES, Published, counts, require_equivalent, space
from tests.envs.tasks.runs import generated

Variant = Literal["det", "icy", "icy_park"]


@pytest.mark.parametrize(
    ("file", "variant", "states"),
    [
        ("det", "det", 12_913),
        pytest.param("nod_nop", "icy", 74_775, marks=pytest.mark.slow),
        pytest.param("nod_p", "icy_park", 77_741, marks=pytest.mark.slow),
    ],
)
def test_five_packages_equal_the_published_model(
    shared: Path, file: str, variant: Variant, states: int
) -> None:
    published = Published.read(shared / "models" / "planning", f"one_way_line_5_10_{file}")
    starts = published.listed.starts(published.document)
    task = OneWayLine(packages=5, variant=variant)
    assert require_equivalent(task, published, starts) == states


@pytest.mark.parametrize(("file", "variant"), [("nod_nop", "icy"), ("nod_p", "icy_park")])
def test_five_packages_equal_the_published_model_near_its_starts(
    shared: Path, file: str, variant: Variant
) -> None:
    published = Published.read(shared / "models" / "planning", f"one_way_line_5_10_{file}")
    starts = published.listed.starts(published.document)
    task = OneWayLine(packages=5, variant=variant)
    assert require_equivalent(task, published, starts, 10_000) == 10_000


def test_five_packages_have_the_published_start_states(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "one_way_line_5_10_nod_p")
    document, planning = generated(OneWayLine(packages=5, variant="icy_park"))
    ours = set(planning.starts(document))
    assert ours == set(published.condition.starts(published.document))
    assert len(ours) == 8008


def test_fifteen_packages_equal_the_published_model_near_its_starts(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "one_way_line_15_10_det")
    starts = published.listed.starts(published.document)
    assert require_equivalent(OneWayLine(), published, starts[:50], 15_000) == 15_000


def test_fifteen_packages_on_ice_equal_the_published_model_near_its_starts(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "one_way_line_15_10_icy_park")
    starts = _scattered(published.document, 50)
    task = OneWayLine(variant="icy_park")
    assert require_equivalent(task, published, starts, 15_000) == 15_000


def _scattered(document: Document, number: int) -> list[State]:
    rng = random.Random(0)
    places = [*(f"location_load_{place}" for place in range(9)), "truck_load_0"]
    starts = []
    for _ in range(number):
        row = dict.fromkeys([*places, "location_load_9"], 0)
        for _ in range(15):
            row[rng.choice(places)] += 1
        starts.append(document.state({**row, "aux_vel": rng.randint(0, 3)}))
    return starts


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (OneWayLine(packages=2, locations=5), (1089, 2483, 81, 8, 236, 0, 60, 60)),
        (
            OneWayLine(packages=2, locations=5, variant="icy"),
            (1139, 2873, 87, 12, 44, 0, 60, 0),
        ),
        (
            OneWayLine(packages=2, locations=5, variant="icy_park"),
            (1223, 3041, 87, 16, 736, 60, 60, 60),
        ),
        (OneWayLine(packages=1, locations=2), (53, 123, 5, 8, 24, 0, 8, 8)),
        (
            OneWayLine(
                packages=2, locations=6, variant="icy", speed=2, icy=(0, 3, 5),
                dec_slips=False, fix_truck_start=False,
            ),
            (1229, 2811, 77, 9, 291, 0, 315, 165),
        ),
        (
            OneWayLine(
                packages=2, locations=7, variant="icy_park", speed=4, drop_probability=0.0
            ),
            (3964, 9922, 204, 15, 365, 140, 140, 0),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, OneWayLine) else "",
)  # fmt: skip
def test_small_lines_have_the_counts_that_storm_finds(
    task: OneWayLine, expected: tuple[int, ...]
) -> None:
    document, planning = generated(task)
    found = counts(document, planning, planning.starts(document))
    assert found == dict(zip(FIGURES, expected, strict=True))


@pytest.mark.parametrize("variant", ["det", "icy", "icy_park"])
def test_no_package_is_lost_from_the_books(variant: Variant) -> None:
    document, planning = generated(OneWayLine(packages=2, locations=5, variant=variant))
    for state in space(document, planning.starts(document)):
        assert sum(state[:5]) + state[6] == 2


def test_without_ice_plain_move_needs_a_package_on_board() -> None:
    document, _ = generated(OneWayLine(packages=2, locations=6))
    rolling = {"truck_vel_0": 1, "location_load_0": 2}
    empty = document.state(rolling)
    loaded = document.state({**rolling, "location_load_0": 1, "truck_load_0": 1})
    assert "move_truck_0" not in {label for label, _ in document.choices(empty)}
    assert "move_truck_0" in {label for label, _ in document.choices(loaded)}


def test_too_fast_near_the_end_every_motion_crashes() -> None:
    document, planning = generated(OneWayLine(packages=1, locations=6))
    crash = document.function(planning.failure)
    state = document.state({"truck_0": 4, "truck_vel_0": 2})
    choices = list(document.choices(state))
    assert [label for label, _ in choices] == ["acc_truck_0", "dec_truck_0", "move_truck_0"]
    assert all(crash(target) for _, outcomes in choices for _, target in outcomes)


def test_a_parked_truck_may_still_unload() -> None:
    document, _ = generated(OneWayLine(packages=1, locations=4, variant="icy_park"))
    parked = {"truck_0": 3, "parked_0": 1, "location_load_0": 0, "truck_load_0": 1}
    labels = {label for label, _ in document.choices(document.state(parked))}
    assert labels == {"drop_truck_0"}


def test_only_chance_makes_the_model_an_mdp() -> None:
    assert OneWayLine().model()["type"] == "lts"
    assert OneWayLine(variant="icy").model()["type"] == "mdp"


def test_the_name_tells_the_parameters_apart() -> None:
    assert OneWayLine().name == "one_way_line_15_10_det"
    task = OneWayLine(packages=3, locations=8, variant="icy", speed=2, icy=(1, 2))
    assert task.name == "one_way_line_3_8_icy_v2_ice_1_2"


def test_the_policy_does_not_see_the_crash_flag() -> None:
    task = OneWayLine(variant="icy_park")
    declared = [variable["name"] for variable in task.model()["variables"]]
    assert [*task.observed, "aux_vel"] == declared


def test_a_list_of_icy_locations_is_the_same_as_a_tuple() -> None:
    listed = OneWayLine(variant="icy", icy=[1, 2])  # type: ignore[arg-type]  # as JSON gives it
    assert listed == OneWayLine(variant="icy", icy=(1, 2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"packages": 0}, "packages"),
        ({"locations": 1}, "locations"),
        ({"speed": 0}, "speed"),
        ({"icy": (10,)}, "icy"),
        ({"icy": (1, 1)}, "icy"),
        ({"variant": "wet"}, "variant"),
        ({"drop_probability": 0.9, "icy_probability": 0.1}, "sum to less"),
        ({"drop_probability": -0.1}, "drop_probability"),
        ({"icy_probability": "often"}, "icy_probability"),
        ({"icy": 3}, "icy"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(
    parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        OneWayLine(**parameters)  # type: ignore[arg-type]  # wrong on purpose
