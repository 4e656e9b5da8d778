from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import ConfigError
from tests.envs.tasks.equivalence import FIGURES, Published, counts, require_equivalent, space
from tests.envs.tasks.runs import generated

Variant = Literal["det", "icy", "icy_park"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "variant", "states"),
    [("det", "det", 74_074), ("nod_nop", "icy", 74_074), ("nod_p", "icy_park", 75_075)],
)
def test_four_packages_equal_the_published_model(
    shared: Path, file: str, variant: Variant, states: int
) -> None:
    published = Published.read(shared / "models" / "planning", f"two_way_line_4_10_{file}")
    starts = published.listed.starts(published.document)
    task = TwoWayLine(packages=4, variant=variant)
    assert require_equivalent(task, published, starts) == states


@pytest.mark.parametrize(
    ("file", "variant"), [("det", "det"), ("nod_nop", "icy"), ("nod_p", "icy_park")]
)
def test_four_packages_equal_the_published_model_near_its_starts(
    shared: Path, file: str, variant: Variant
) -> None:
    published = Published.read(shared / "models" / "planning", f"two_way_line_4_10_{file}")
    starts = published.listed.starts(published.document)
    task = TwoWayLine(packages=4, variant=variant)
    assert require_equivalent(task, published, starts, 10_000) == 10_000


def test_four_packages_have_the_published_start_states(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "two_way_line_4_10_nod_p")
    document, planning = generated(TwoWayLine(packages=4, variant="icy_park"))
    ours = set(planning.starts(document))
    assert ours == set(published.condition.starts(published.document))
    assert len(ours) == 2860


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (TwoWayLine(packages=2, locations=6), (4144, 12768, 336, 20, 2256, 0, 84, 84)),
        (
            TwoWayLine(packages=2, locations=6, variant="icy"),
            (4144, 12320, 336, 20, 1596, 0, 84, 84),
        ),
        (
            TwoWayLine(packages=2, locations=6, variant="icy_park"),
            (4256, 12544, 336, 24, 1708, 112, 84, 84),
        ),
        (
            TwoWayLine(packages=1, locations=4, variant="icy", icy=(0, 1, 2, 3)),
            (440, 1352, 40, 20, 76, 0, 16, 8),
        ),
        (TwoWayLine(packages=2, locations=3, speed=2), (450, 1422, 60, 12, 216, 0, 18, 18)),
        (
            TwoWayLine(
                packages=1, locations=5, variant="icy_park", speed=1, dec_slips=False,
                fix_truck_start=False,
            ),
            (204, 488, 12, 8, 148, 12, 40, 40),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, TwoWayLine) else "",
)  # fmt: skip
def test_small_lines_have_the_counts_that_storm_finds(
    task: TwoWayLine, expected: tuple[int, ...]
) -> None:
    document, planning = generated(task)
    found = counts(document, planning, planning.starts(document))
    assert found == dict(zip(FIGURES, expected, strict=True))


@pytest.mark.parametrize("variant", ["det", "icy", "icy_park"])
def test_no_package_is_lost_from_the_books(variant: Variant) -> None:
    document, planning = generated(TwoWayLine(packages=2, locations=6, variant=variant))
    for state in space(document, planning.starts(document)):
        assert sum(state[:6]) + state[7] == 2


@pytest.mark.parametrize(("variant", "waits"), [("det", True), ("icy", False)])
def test_a_standing_truck_can_wait_only_without_ice(
    variant: Literal["det", "icy"], waits: bool
) -> None:
    document, _ = generated(TwoWayLine(packages=1, locations=6, variant=variant))
    state = document.state({"truck_0": 3})
    stays = [outcomes for _, outcomes in document.choices(state) if outcomes == ((1.0, state),)]
    assert bool(stays) == waits


def test_too_fast_at_either_end_every_motion_crashes() -> None:
    document, planning = generated(TwoWayLine(packages=1, locations=8))
    crash = document.function(planning.failure)
    for place, velocity in ((1, -2), (6, 2)):
        state = document.state({"truck_0": place, "truck_vel_0": velocity})
        choices = list(document.choices(state))
        assert [label for label, _ in choices] == ["acc_truck_0", "dec_truck_0", "move_truck_0"]
        assert all(crash(target) for _, outcomes in choices for _, target in outcomes)


def test_a_parked_truck_can_do_nothing() -> None:
    document, _ = generated(TwoWayLine(packages=1, locations=6, variant="icy_park"))
    parked = {"truck_0": 5, "parked_0": 1, "location_load_0": 0, "truck_load_0": 1}
    assert not list(document.choices(document.state(parked)))


def test_a_lost_package_lands_where_the_truck_came_from() -> None:
    document, _ = generated(TwoWayLine(packages=1, locations=8, variant="icy"))
    at = {"truck_0": 3, "truck_vel_0": 2, "location_load_0": 0, "truck_load_0": 1}
    choices = dict(document.choices(document.state(at)))
    lost = document.state({"truck_0": 5, "truck_vel_0": 2, "location_load_0": 0,
                           "location_load_3": 1})  # fmt: skip
    assert (0.1, lost) in choices["move_truck_0"]


def test_the_name_tells_the_parameters_apart() -> None:
    assert TwoWayLine(variant="icy").name == "two_way_line_15_10_icy"
    assert TwoWayLine(fix_truck_start=False).name == "two_way_line_15_10_det_free"


def test_parameters_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="locations"):
        TwoWayLine(locations=1)
