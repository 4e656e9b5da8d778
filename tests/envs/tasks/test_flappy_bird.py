from __future__ import annotations

from typing import Any

import pytest

from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.errors import ConfigError
from tests.envs.tasks.equivalence import counts, safe_states, space
from tests.envs.tasks.runs import (
    generated,
    loaded,
)


def test_the_usual_size_has_the_known_counts() -> None:
    document, planning = generated(FlappyBird())
    assert counts(document, planning, planning.starts(document)) == {
        "states": 200,
        "choices": 360,
        "failing": 21,
        "goal": 0,
        "safe": 145,
        "deadlocks_not_failing": 0,
        "start_states": 10,
        "start_states_safe": 10,
    }


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("width", "height"), [(5, 5), (12, 3), (9, 2), (31, 6), (25, 21), (50, 16)]
)
def test_regular_walls_leave_every_start_safe(width: int, height: int, skip: bool) -> None:
    document, planning = generated(FlappyBird(width=width, height=height, skip=skip))
    starts = planning.starts(document)
    assert len(starts) == height
    safe = safe_states(document, planning, space(document, starts))
    assert set(starts) <= safe


def test_openings_too_far_apart_leave_no_safe_state() -> None:
    document, planning = generated(FlappyBird(width=8, height=6, walls=((2, 0, 2), (5, 4, 2))))
    starts = planning.starts(document)
    assert safe_states(document, planning, space(document, starts)) == set()


def test_a_single_free_row_needs_skipping() -> None:
    for skip in (False, True):
        task = FlappyBird(width=6, height=3, walls=((3, 1, 1),), skip=skip)
        document, planning = generated(task)
        states = space(document, planning.starts(document))
        assert bool(safe_states(document, planning, states)) == skip


def test_a_move_goes_right_by_chance_and_around_at_the_end() -> None:
    document, _ = generated(FlappyBird(probability=0.25))
    assert dict(document.choices((19, 4, 0))) == {
        "up": ((0.25, (0, 5, 0)), (0.75, (19, 5, 0))),
        "down": ((0.25, (0, 3, 0)), (0.75, (19, 3, 0))),
    }
    assert dict(document.choices((3, 9, 0))) == {"down": ((0.25, (4, 8, 0)), (0.75, (3, 8, 0)))}


def test_only_cells_of_walls_outside_their_openings_fail() -> None:
    document, planning = generated(FlappyBird(width=6, height=5, walls=((2, 0, 2), (4, 1, 3))))
    failing = document.function(planning.failure)
    hit = {(x, y) for x in range(6) for y in range(5) if failing((x, y, 0))}
    assert hit == {(2, 2), (2, 3), (2, 4), (4, 0), (4, 4)}


def test_name_tells_what_is_unusual() -> None:
    assert FlappyBird().name == "flappy_bird_20_10"
    assert FlappyBird(skip=True, walls=((2, 0, 2),)).name == "flappy_bird_20_10_skip_2-0-2"
    assert FlappyBird(walls=(), probability=0.3).name == "flappy_bird_20_10_p0.3_free"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"width": 1}, "width"),
        ({"height": 1}, "height"),
        ({"skip": 1}, "skip"),
        ({"probability": -0.1}, "probability"),
        ({"walls": ((0, 1, 2),)}, "column"),
        ({"walls": ((1, 9, 2),)}, "free rows"),
        ({"walls": ((1, 1),)}, "walls"),
        ({"walls": ((1, 1, 2), (1, 2, 3))}, "walls names 1 twice"),
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FlappyBird(**bad)


def test_the_package_reads_a_task_without_a_goal() -> None:
    task = loaded(FlappyBird(skip=True))
    assert task.actions == ("up", "down", "skip")
    assert task.initial.count() == 10
    assert not task.is_goal(task.state({"bird_x": 0, "bird_y": 0}))
    assert task.is_failing(task.state({"bird_x": 5, "bird_y": 0}))


def test_pictures_are_told_the_walls() -> None:
    assert FlappyBird().scenery == {"walls": ((5, 3, 3), (10, 5, 3), (15, 1, 3))}
    assert FlappyBird(walls=((2, 0, 2),)).scenery == {"walls": ((2, 0, 2),)}
