from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.follow_car import FollowCar
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import Document
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
    published = Published.read(shared / "models" / "planning", "follow_car_0.4")
    ours, theirs = generated(FollowCar()), (published.document, published.condition)
    starts = published.listed.starts(theirs[0])[:25] + sampled(ours, 25, 0)
    assert require_same_runs(ours, theirs, starts, 1100) > 5000
    wild = anywhere(ours[0], 2000, 0)
    require_same_runs(ours, theirs, wild, 1)
    require_same_starts(ours, theirs, wild + starts)


@pytest.mark.parametrize("timestep", [0.05, 0.1, 0.25, 0.4, 0.7])
def test_braking_until_slower_than_the_lead_is_safe_from_the_worst_start(timestep: float) -> None:
    document, planning = generated(FollowCar(timestep=timestep))
    failing = document.function(planning.failure)
    state = document.state({"lead_position": 40, "ego_position": 29.9999, "ego_velocity": 32})
    for _ in range(1000):
        slow = state[3] < 28 - timestep
        state = dict(document.choices(state))["accelerate" if slow else "decelerate"][0][1]
        assert not failing(state)


@pytest.mark.parametrize("timestep", [0.05, 0.7, 3.0])
def test_random_runs_stay_within_the_bounds(timestep: float) -> None:
    pair = generated(FollowCar(timestep=timestep))
    assert all(walk(pair, start, 300, 0) for start in sampled(pair, 20, 1))


def test_goal_needs_time_and_distance() -> None:
    document, planning = generated(FollowCar())
    goal = document.function(planning.goal)
    reached = document.state({"episode": 1000, "ego_position": 11_201})
    assert goal(reached)
    assert not goal(document.state({"episode": 1000, "ego_position": 11_000}))
    assert not goal(document.state({"episode": 999, "ego_position": 12_000}))


def test_the_last_episode_is_a_dead_end() -> None:
    document = Document(FollowCar().model())
    assert list(document.choices(document.state({"episode": 4000}))) == []


def test_name_tells_the_timestep() -> None:
    assert FollowCar(timestep=0.05).name == "follow_car_0.05"


@pytest.mark.parametrize("timestep", [0, -1, float("nan"), float("inf"), "0.1", True])
def test_a_timestep_that_is_no_positive_number_is_refused(timestep: float) -> None:
    with pytest.raises(ConfigError, match="timestep"):
        FollowCar(timestep=timestep)


def test_the_package_reads_both_as_the_same_task(shared: Path) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(
        folder / "follow_car_0.4.jani", folder / "follow_car_0.4.props.jani", property=1
    )
    assert require_same_tasks(loaded(FollowCar()), theirs, 50, 400) == 20000
