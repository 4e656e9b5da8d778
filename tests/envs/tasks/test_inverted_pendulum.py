from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.inverted_pendulum import InvertedPendulum
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import Document, read_json
from tests.envs.tasks.equivalence import Planning
from tests.envs.tasks.runs import (
    Pair,
    anywhere,
    generated,
    loaded,
    require_same_runs,
    require_same_starts,
    require_same_tasks,
    sampled,
    walk,
)


def _published(folder: Path) -> Pair:
    planning = Planning(
        name="inverted_pendulum",
        start=read_json(folder / "start.jani")["exp"],
        goal=read_json(folder / "objective.jani")["goal"]["exp"],
        failure=read_json(folder / "safe.jani")["exp"],
        potential=0,
        step_reward=0,
    )
    return Document(read_json(folder / "inverted_pendulum.jani")), planning


def test_runs_equal_those_of_the_published_model(shared: Path) -> None:
    ours, theirs = generated(InvertedPendulum()), _published(shared / "models" / "planning")
    starts = sampled(ours, 500, 0)
    assert require_same_runs(ours, theirs, starts, 1100) > 2000
    # Skipping far out leaves the bounds in both models, so stay inside.
    wild = [s for s in anywhere(ours[0], 5000, 0) if abs(s[1]) < 1 and abs(s[2]) < 7]
    assert require_same_runs(ours, theirs, wild, 1) > 200
    require_same_starts(ours, theirs, wild + starts)


def test_turning_against_the_fall_holds_the_pole_from_every_sampled_start() -> None:
    pair = document, planning = generated(InvertedPendulum())
    failing, goal = document.function(planning.failure), document.function(planning.goal)
    for start in sampled(pair, 100, 2):
        state = start
        while not goal(state):
            push = state[1] + 0.3 * state[2]
            action = "rotate_left" if push > 0 else "rotate_right"
            state = dict(document.choices(state))[action][0][1]
            assert not failing(state)


def test_turning_never_ends_in_a_failure_but_skipping_can() -> None:
    document, planning = generated(InvertedPendulum())
    failing = document.function(planning.failure)
    reached = {
        label
        for state in anywhere(document, 5000, 1)
        if abs(state[1]) < 0.785 and abs(state[2]) < 7
        for label, outcomes in document.choices(state)
        if failing(outcomes[0][1])
    }
    # On the limit itself turning fails too: its guard includes the limit.
    assert reached == {"skip"}


@pytest.mark.parametrize("timestep", [0.01, 0.05, 0.1, 0.2, 0.35, 0.6])
def test_random_runs_stay_within_the_bounds(timestep: float) -> None:
    pair = generated(InvertedPendulum(timestep=timestep))
    assert all(walk(pair, start, 1100, 0) for start in sampled(pair, 50, 1))


def test_name_tells_the_timestep() -> None:
    assert InvertedPendulum().name == "inverted_pendulum_0.1"


@pytest.mark.parametrize("timestep", [0, -0.1, 0.7, float("nan")])
def test_a_timestep_out_of_range_is_refused(timestep: float) -> None:
    with pytest.raises(ConfigError, match="timestep"):
        InvertedPendulum(timestep=timestep)


def test_the_package_reads_both_as_the_same_task(shared: Path) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(folder / "inverted_pendulum.jani", folder / "inverted_pendulum.props.jani")
    assert require_same_tasks(loaded(InvertedPendulum()), theirs, 50, 400) == 20000
