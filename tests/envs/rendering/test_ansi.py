from __future__ import annotations

import pytest

from safetest_gym.envs.rendering.ansi import draw_ansi
from safetest_gym.envs.rendering.scene import Scene
from safetest_gym.jani.tree import Variable
from tests.envs.rendering.scenes import STATES


def test_the_headline_tells_title_step_action_and_outcome() -> None:
    scene = Scene(title="ferry", step=7, action="cross", outcome="failing")
    assert draw_ansi({"x": 1}, scene).splitlines()[0] == "ferry  step 7  cross  [FAILING]"


def test_variables_are_listed_below_each_other() -> None:
    text = draw_ansi({"x": 1, "longer": 2.5}, Scene())
    assert text.splitlines()[1:] == ["  x       1", "  longer  2.5"]


def test_locations_and_bools_are_written_as_words() -> None:
    place = Variable("main.location", "int", 0, 1, 0, locations=("here", "there"))
    ready = Variable("ready", "bool", 0, 1, False)
    text = draw_ansi({"main.location": 1, "ready": True}, Scene(variables=(place, ready)))
    assert "there" in text
    assert "true" in text


def test_a_line_is_sketched_with_the_truck_in_brackets() -> None:
    assert "  | 4 |[0+2]| 1 |  >" in draw_ansi(STATES["line"], Scene(), "line")


def test_towers_are_sketched_from_the_table_up() -> None:
    text = draw_ansi(STATES["blocksworld"], Scene(), "blocksworld").splitlines()
    assert text[1:3] == ["  hand: 0", "  table: 2 1"]


def test_jigs_are_sketched_where_they_are() -> None:
    text = draw_ansi(STATES["beluga"], Scene(), "beluga").splitlines()
    assert text[1:10] == [
        "  aeroplane  [ ] [ ] [2]",
        "  trailer    [1]",
        "  rack 0     [0]",
        "  rack 1     nothing",
        "  truck      [ ]",
        "  delivered  nothing",
        "  line 0     wants [0] now",
        "  line 1     done",
        "  swaps      1",
    ]


@pytest.mark.parametrize("name", STATES)
def test_every_state_has_a_text(name: str) -> None:
    assert all(variable in draw_ansi(STATES[name], Scene(), name) for variable in STATES[name])
