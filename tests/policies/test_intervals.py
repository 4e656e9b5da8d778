"""Wilson's interval, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from safetest_gym.policies.intervals import Rate, wilson


def test_the_interval_is_wilson_s() -> None:
    rate = wilson(0.5, 100)
    assert (rate.low, rate.high) == pytest.approx((0.40383, 0.59617), abs=1e-5)


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_at_the_ends_the_interval_holds_the_fraction(fraction: float) -> None:
    rate = wilson(fraction, 7)
    assert rate.low <= fraction <= rate.high
    assert rate.high - rate.low > 0.3


def test_without_trials_nothing_is_known() -> None:
    rate = wilson(0.0, 0)
    assert math.isnan(rate.value)
    assert (rate.low, rate.high) == (0, 1)


def test_an_exact_rate_is_printed_without_interval() -> None:
    assert str(Rate(0.25, 0.25, 0.25)) == "25.0 %"
    assert str(wilson(0.5, 100)) == "50.0 % [40.4, 59.6]"
