from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.transport import Transport
from safetest_gym.errors import ConfigError
from tests.envs.tasks.document import Document, read_json
from tests.envs.tasks.equivalence import (
    FIGURES,
    Published,
    counts,
    require_equivalent,
    require_same_steps,
    require_same_variables,
    space,
)
from tests.envs.tasks.runs import generated


def test_four_packages_equal_the_published_model(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "transport_4_5")
    task = Transport(packages=4, locations=5)
    document, planning = generated(task)
    starts = planning.starts(document)
    assert set(starts) == set(published.condition.starts(published.document))
    assert require_equivalent(task, published, starts) == 2926
    listed = published.listed.starts(published.document)
    assert require_equivalent(task, published, listed) == 2344


def test_fifteen_packages_equal_the_published_model_near_its_starts(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "transport_15_10")
    starts = published.listed.starts(published.document)
    assert require_equivalent(Transport(), published, starts, 15_000) == 15_000


def test_fifteen_packages_step_like_the_older_published_model(shared: Path) -> None:
    theirs = Document(read_json(shared / "models" / "planning" / "linetrack.jani"))
    ours, _ = generated(Transport())
    require_same_variables(ours, theirs)
    require_same_steps(ours, theirs, space(theirs, [theirs.state({})], 15_000))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (Transport(packages=2, locations=3), (90, 216, 23, 2, 67, 0, 36, 36)),
        (Transport(packages=3, locations=4, bridge=2), (542, 1434, 130, 3, 412, 0, 240, 240)),
        (Transport(packages=1, locations=2), (12, 22, 2, 2, 10, 0, 4, 4)),
        (Transport(packages=4, locations=5), (2926, 8120, 749, 2, 2177, 0, 1400, 1400)),
    ],
    ids=lambda value: value.name if isinstance(value, Transport) else "",
)
def test_small_roads_have_the_counts_that_storm_finds(
    task: Transport, expected: tuple[int, ...]
) -> None:
    document, planning = generated(task)
    found = counts(document, planning, planning.starts(document))
    assert found == dict(zip(FIGURES, expected, strict=True))


def test_only_an_overloaded_road_is_a_failure_and_the_next_drive_forgets_it() -> None:
    document, planning = generated(Transport(packages=2, locations=3))
    failing = document.function(planning.failure)
    loaded = {"location_load_0": 0, "truck_load_0": 2, "truck_0": 1}
    after = dict(document.choices(document.state(loaded)))["drive_forward"][0][1]
    assert failing(after)
    empty = document.state({"location_load_0": 2, "truck_0": 2, "last_capacity_diff": -1})
    assert not failing(dict(document.choices(empty))["drive_backward"][0][1])


def test_the_policy_does_not_see_the_spare_capacity() -> None:
    task = Transport()
    declared = [variable["name"] for variable in task.model()["variables"]]
    assert [*task.observed, "last_capacity_diff"] == declared


@pytest.mark.parametrize("wrong", [{"packages": 0}, {"locations": 1}, {"bridge": 16}])
def test_parameters_out_of_range_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Transport(**wrong)
