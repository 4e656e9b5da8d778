from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.whole_numbers import require_int


@pytest.mark.parametrize("value", [2, 5, np.int64(3), np.uint8(4)])
def test_integers_within_the_bounds_pass(value: int) -> None:
    require_int("jigs", value, 2, 5)


@pytest.mark.parametrize("value", [1, 6, 3.0, True, "3", None, np.int64(7), np.float64(3)])
def test_other_values_are_named_with_the_bounds(value: object) -> None:
    with pytest.raises(ConfigError, match=r"jigs must be an integer in 2\.\.5, got"):
        require_int("jigs", value, 2, 5)


def test_numpy_s_integers_are_not_plain() -> None:
    with pytest.raises(ConfigError, match="jigs must be an integer at least 2, got"):
        require_int("jigs", np.int64(3), 2, plain=True)


def test_what_needs_more_than_64_bits_is_refused() -> None:
    require_int("seed", 2**63 - 1, 0)
    with pytest.raises(ConfigError, match=r"at least 0 and below 2\*\*63, got"):
        require_int("seed", 2**63, 0)
