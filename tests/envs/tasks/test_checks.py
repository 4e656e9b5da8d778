from __future__ import annotations

import pytest

from safetest_gym.envs.tasks.checks import (
    require_between,
    require_int,
    require_plain_tuple,
    require_positive,
    require_unique,
)
from safetest_gym.errors import ConfigError


@pytest.mark.parametrize("value", [2, 5])
def test_integers_within_the_bounds_pass(value: int) -> None:
    require_int("jigs", value, 2, 5)


@pytest.mark.parametrize("value", [1, 6, 3.0, True, "3", None])
def test_other_values_are_no_integers_within_the_bounds(value: object) -> None:
    with pytest.raises(ConfigError, match=r"jigs must be an integer in 2\.\.5, got"):
        require_int("jigs", value, 2, 5)


def test_an_integer_without_an_upper_bound_is_told_the_lower_one() -> None:
    with pytest.raises(ConfigError, match="jigs must be an integer at least 2, got 1"):
        require_int("jigs", 1, 2)


@pytest.mark.parametrize("value", [0, -0.1, float("inf"), float("nan"), True, "1"])
def test_only_finite_numbers_above_zero_are_positive(value: object) -> None:
    require_positive("timestep", 1e-9)
    with pytest.raises(ConfigError, match="timestep must be a finite number above 0"):
        require_positive("timestep", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), False, None])
def test_numbers_outside_a_range_are_refused(value: object) -> None:
    require_between("probability", 1, 0, 1)
    with pytest.raises(ConfigError, match=r"probability must be a number in \[0, 1\]"):
        require_between("probability", value, 0, 1)


def test_lists_and_tuples_of_another_length_are_refused() -> None:
    require_plain_tuple("lines", (1, 2), 2)
    with pytest.raises(ConfigError, match="lines must be a tuple of 2 entries"):
        require_plain_tuple("lines", (1,), 2)
    with pytest.raises(ConfigError, match=r"lines must be a tuple, got \[\]"):
        require_plain_tuple("lines", [])


def test_repeated_values_are_refused() -> None:
    require_unique("walls", (1, 2))
    with pytest.raises(ConfigError, match="walls names 2 twice"):
        require_unique("walls", (2, 1, 2))
