from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from safetest_gym.envs.tasks.bouncing_ball import BouncingBall
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import Document, State, read_json
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


def _published(folder: Path) -> tuple[Pair, list[State]]:
    planning = Planning(
        name="bouncing_ball",
        start=read_json(folder / "bouncing_ball.start_compact.jani")["exp"],
        goal=read_json(folder / "bouncing_ball.objective.jani")["goal"]["exp"],
        failure=read_json(folder / "bouncing_ball.safe.jani")["exp"],
        potential=0,
        step_reward=0,
    )
    document = Document(read_json(folder / "bouncing_ball.jani"))
    rows = read_json(folder / "bouncing_ball.start.jani")["values"]
    listed = [document.state({v["var"]: v["value"] for v in row["variables"]}) for row in rows]
    return (document, planning), listed


def _low(document: Document, seed: int) -> list[State]:
    """States from anywhere, but not so high that one step leaves the bounds."""
    return [(s[0], s[1] / 50, *s[2:]) for s in anywhere(document, 3000, seed)]


def test_runs_equal_those_of_the_published_model(shared: Path) -> None:
    ours = generated(BouncingBall())
    theirs, listed = _published(shared / "models" / "planning")
    starts = listed[:20] + sampled(ours, 20, 0)
    assert require_same_runs(ours, theirs, starts, 1100) > 5000
    wild = _low(ours[0], 0)
    require_same_runs(ours, theirs, wild, 1)
    require_same_starts(ours, theirs, wild + listed)


def test_one_edge_at_most_is_enabled_per_action() -> None:
    document, _ = generated(BouncingBall())
    for state in _low(document, 1):
        labels = [label for label, _ in document.choices(state)]
        assert len(labels) == len(set(labels))


def test_hits_need_a_height_in_the_window() -> None:
    document, _ = generated(BouncingBall(push=7))
    for height, possible in ((6.9, False), (7, True), (9, True), (9.1, False)):
        labels = [label for label, _ in document.choices(document.state({"height": height}))]
        assert ("push" in labels) == possible


def test_a_ball_that_is_never_hit_fails() -> None:
    document, planning = generated(BouncingBall())
    failing, state = document.function(planning.failure), document.state({})
    for _ in range(200):
        state = dict(document.choices(state))["skip"][0][1]
        if failing(state):
            return
    pytest.fail("still bouncing")


@pytest.mark.parametrize(("push", "failing_starts"), [(5, False), (7, True)])
def test_starts_fail_only_below_a_raised_window(push: float, failing_starts: bool) -> None:
    pair = document, planning = generated(BouncingBall(push=push))
    failing = document.function(planning.failure)
    assert any(failing(start) for start in sampled(pair, 200, 0)) == failing_starts


@pytest.mark.parametrize("timestep", [0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("push", [3.5, 5, 7])
def test_random_runs_stay_within_the_bounds(timestep: float, push: float) -> None:
    pair = generated(BouncingBall(timestep=timestep, push=push))
    assert all(walk(pair, start, 1100, 0) for start in sampled(pair, 5, 1))


def test_name_tells_timestep_and_window() -> None:
    assert BouncingBall(timestep=0.1, push=7).name == "bouncing_ball_0.1_push7"


@pytest.mark.parametrize("push", [0, -1, 9.5, float("nan"), "5"])
def test_a_window_out_of_range_is_refused(push: float) -> None:
    with pytest.raises(ConfigError, match="push"):
        BouncingBall(push=push)


def test_the_package_reads_both_as_the_same_task(shared: Path) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(
        folder / "bouncing_ball.jani",
        failure=folder / "bouncing_ball.safe.jani",
        goal=folder / "bouncing_ball.objective.jani",
        start=folder / "bouncing_ball.start_compact.jani",
    )
    assert require_same_tasks(loaded(BouncingBall()), theirs, 50, 400) == 20_000


def test_numbers_may_be_those_of_numpy() -> None:
    plain, numpy = (BouncingBall(push=number) for number in (6.5, np.float64(6.5)))
    assert plain.model() == numpy.model()
    assert type(numpy.model()["constants"][-2]["value"]) is float
