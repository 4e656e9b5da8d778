from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.cart_pole import CartPole
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
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
    published = Published.read(shared / "models" / "planning", "cart_pole_0.003")
    ours, theirs = generated(CartPole()), (published.document, published.condition)
    starts = published.listed.starts(theirs[0]) + sampled(ours, 50, 0)
    assert require_same_runs(ours, theirs, starts, 1100) > 5000
    # Angles beyond the failure leave the bounds in both models, so stay below them.
    wild = [state for state in anywhere(ours[0], 3000, 0) if abs(state[3]) < 0.28]
    require_same_runs(ours, theirs, wild, 1)
    require_same_starts(ours, theirs, wild + starts)


def test_a_fast_turning_pole_close_to_the_limit_cannot_be_saved() -> None:
    document, planning = generated(CartPole())
    state = document.state({"angle": 0.2, "angular_velocity": 0.5})
    assert document.function(planning.start)(state)
    failing = document.function(planning.failure)
    while not failing(state):
        state = dict(document.choices(state))["push_right"][0][1]
        assert state[4] > 0, "turned around in time"


def test_a_pole_at_rest_is_held_for_a_thousand_steps() -> None:
    document, planning = generated(CartPole())
    failing, goal = document.function(planning.failure), document.function(planning.goal)
    state = document.state({})
    while not goal(state):
        lean = state[3] + 0.1 * state[4]
        state = dict(document.choices(state))["push_right" if lean > 0 else "push_left"][0][1]
        assert not failing(state)


@pytest.mark.parametrize("timestep", [0.001, 0.003, 0.02, 0.1])
def test_random_runs_stay_within_the_bounds(timestep: float) -> None:
    pair = generated(CartPole(timestep=timestep))
    assert all(walk(pair, start, 1100, 0) for start in sampled(pair, 20, 1))


def test_name_tells_the_timestep() -> None:
    assert CartPole(timestep=0.02).name == "cart_pole_0.02"


@pytest.mark.parametrize("timestep", [0, -1, float("nan"), float("inf"), None])
def test_a_timestep_that_is_no_positive_number_is_refused(timestep: float) -> None:
    with pytest.raises(ConfigError, match="timestep"):
        CartPole(timestep=timestep)


def test_the_package_reads_both_as_the_same_task(shared: Path) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(
        folder / "cart_pole_0.003.jani", folder / "cart_pole_0.003.props.jani", property=1
    )
    assert require_same_tasks(loaded(CartPole()), theirs, 50, 400) == 20000
