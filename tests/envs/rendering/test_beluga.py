from __future__ import annotations

from safetest_gym.envs.rendering.beluga import rack_contents


def test_a_rack_is_read_from_front_to_back_along_the_links() -> None:
    values = {"front_rack_0": 2, "back_jig_2": 0, "back_jig_0": 1, "back_jig_1": -1}
    assert rack_contents(values, 0) == [2, 0, 1]


def test_an_empty_rack_has_no_jigs() -> None:
    assert rack_contents({"front_rack_0": -1}, 0) == []


def test_a_loop_of_links_ends() -> None:
    assert rack_contents({"front_rack_0": 0, "back_jig_0": 0}, 0) == [0]
