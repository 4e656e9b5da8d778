from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.envs.rendering import PICTURES, picture
from safetest_gym.envs.rendering.canvas import HEIGHT, WIDTH, Palette
from safetest_gym.envs.rendering.scene import Scene
from safetest_gym.errors import ConfigError
from tests.envs.rendering.scenes import STATES


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_has_the_frame_size_and_is_not_blank(name: str) -> None:
    frame = np.array(picture(name)(STATES[name], Scene(title=name)))
    assert frame.shape == (HEIGHT, WIDTH, 3)
    assert frame.dtype == np.uint8
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_depends_on_nothing_but_its_arguments(name: str) -> None:
    scene = Scene(title=name, action="go", step=4, trail=[STATES[name]])
    first, second = (np.array(picture(name)(STATES[name], scene)) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", PICTURES)
def test_failing_gives_a_red_frame_and_goal_a_green_one(name: str) -> None:
    failing = np.array(picture(name)(STATES[name], Scene(outcome="failing")))
    goal = np.array(picture(name)(STATES[name], Scene(outcome="goal")))
    assert tuple(failing[2, 2]) == Palette.RED
    assert tuple(goal[2, 2]) == Palette.GREEN


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"table"}))
def test_every_variable_that_moves_things_changes_the_picture(name: str) -> None:
    values = dict(STATES[name])
    moving = {"beluga": "jig_2", "blocksworld": "block_2", "bouncing_ball": "height"}
    moving |= {"cart_pole": "position", "flappy_bird": "bird_x", "flight_diversion": "pos_z"}
    moving |= {"follow_car": "ego_position", "inverted_pendulum": "angle", "line": "truck_0"}
    moving |= {"n_puzzle": "tile_3", "rovers": "rover_0_x", "transport": "truck_0"}
    changed = values | {moving[name]: {0: 1, 1: 0}.get(int(values[moving[name]]), 1)}
    before = np.array(picture(name)(values, Scene()))
    assert not np.array_equal(before, np.array(picture(name)(changed, Scene())))


def test_an_unknown_picture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown picture 'lines'; known: beluga"):
        picture("lines")
