"""Start states given by a condition on reals."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.errors import StartError
from tests.starts.building import Types, starts_of

UNIT: Types = {"x": (0, 1, "real"), "y": (0, 1, "real")}
WIDE: Types = {"x": (0, 1000, "real"), "y": (0, 1000, "real")}


def drawn(types: Types, text: str, n: int = 20_000) -> NDArray[np.float64]:
    starts = starts_of(types, text)
    states = starts.sample(n, np.random.default_rng(11))
    assert states.dtype == np.float64
    assert all(starts.contains(state) for state in states[:100])
    return states


def even(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Are values spread evenly from ``low`` to ``high``, by chi-square over 20 bins?"""
    assert ((values >= low) & (values <= high)).all()
    seen = np.histogram(values, bins=20, range=(low, high))[0]
    expected = len(values) / 20
    return float(((seen - expected) ** 2 / expected).sum()) < 19 + 4 * math.sqrt(2 * 19)


def test_a_box_is_drawn_from_evenly() -> None:
    types = {"x": (-10, 10, "real"), "e": (0, 4000), "y": "real"}
    states = drawn(types, "-1 <= x and x <= 0.5 and e == 0 and 2 < y and y < 2.25")
    assert even(states[:, 0], -1, 0.5)
    assert even(states[:, 2], 2, 2.25)
    assert (states[:, 1] == 0).all()
    assert (states[:, 2] > 2).all()


def test_an_equation_fixes_a_real() -> None:
    states = drawn(UNIT, "x == 0.25")
    assert (states[:, 0] == 0.25).all()
    assert even(states[:, 1], 0, 1)


def test_reals_that_range_over_an_interval_make_the_set_infinite() -> None:
    starts = starts_of(UNIT, "x == 0.25")
    assert starts.count() is None
    with pytest.raises(StartError, match="infinitely many"):
        starts.enumerate(10)


def test_reals_that_are_all_fixed_make_the_set_finite() -> None:
    starts = starts_of(UNIT, "(x == 0.25 or x == 0.5 or x == 1) and y == 0.5 and x * y < 0.4")
    assert starts.count() == 2
    assert starts.enumerate(2).tolist() == [[0.25, 0.5], [0.5, 0.5]]


def test_several_boxes_are_drawn_from_by_their_volume() -> None:
    types = {"n": (0, 3), "x": (0, 1, "real")}
    states = drawn(
        types, "(n == 0 and x < 0.25) or (n == 1 and x >= 0.25) or (n == 2 and x == 0.5)"
    )
    assert abs(float((states[:, 0] == 0).mean()) - 0.25) < 0.02
    assert not (states[:, 0] == 2).any()
    assert even(states[:, 1], 0, 1)


def test_a_real_can_be_bounded_by_an_int() -> None:
    states = drawn({"n": (0, 3), "x": (0, 1000, "real")}, "x <= n")
    seen = np.bincount(states[:, 0].astype(int), minlength=4) / len(states)
    assert np.abs(seen - np.array([0, 1, 2, 3]) / 6).max() < 0.02


def test_linear_conditions_are_drawn_from_by_rejection() -> None:
    states = drawn(UNIT, "x + y <= 1")
    assert even(1 - (1 - states[:, 0]) ** 2, 0, 1)  # the triangle's distribution of x


def test_conditions_that_are_not_linear_are_drawn_from_by_rejection() -> None:
    states = drawn(WIDE, "x * x + y * y <= 100 * 100")
    assert even((states**2).sum(axis=1) / 100**2, 0, 1)


def test_ints_and_reals_that_do_not_split_are_drawn_from_together() -> None:
    states = drawn({"n": (0, 4), "m": (0, 4), **UNIT}, "n + m == 4 and x + y <= n and x <= m")
    assert (states[:, 0] + states[:, 1] == 4).all()
    seen = np.bincount(states[:, 0].astype(int), minlength=5) / len(states)
    assert np.abs(seen - np.array([0, 0.5, 1, 1, 0]) / 2.5).max() < 0.02


def test_a_thin_linear_set_is_drawn_from_by_hit_and_run() -> None:
    states = drawn(WIDE, "x - y <= 0.000001 and y - x <= 0.000001")
    assert even(states[:, 0], 0, 1000)
    assert even(states[:, 0] - states[:, 1], -1.00001e-6, 1.00001e-6)


def test_hit_and_run_in_many_dimensions_has_the_right_mean() -> None:
    types = {f"x{i}": (0, 1, "real") for i in range(12)}
    states = drawn(types, " + ".join(types) + " <= 1", n=2000)
    assert np.abs(states.mean(axis=0) - 1 / 13).max() < 0.01


def test_the_bulk_evaluator_given_decides() -> None:
    seen: list[int] = []

    def satisfies(states: NDArray[Any]) -> NDArray[np.bool_]:
        seen.append(len(states))
        return np.asarray(states[:, 0] + states[:, 1] <= 0.5)

    states = starts_of(UNIT, "x + y <= 1", satisfies).sample(100, np.random.default_rng(0))
    assert (states.sum(axis=1) <= 0.5).all()
    assert sum(seen) > 100


@pytest.mark.parametrize("text", ["x + y == 1", "x * x + y * y == 0.5", "x * y > 1 - 1 / 1000000"])
def test_a_set_too_small_to_hit_is_an_error_that_reports_the_acceptance(text: str) -> None:
    starts = starts_of(UNIT, text)
    with pytest.raises(StartError, match=r"holds in \d+ of 2000000 states"):
        starts.sample(1, np.random.default_rng(0))


def test_an_unbounded_real_is_an_error_that_names_it() -> None:
    with pytest.raises(StartError, match="'far' has no least value"):
        starts_of({"far": "real"}, "far < 3").count()


def test_linear_conditions_bound_unbounded_reals() -> None:
    states = drawn({"x": "real", "y": "real"}, "x >= 0 and y >= 0 and 2 * x + y <= 4")
    assert float(states[:, 0].max()) <= 2
    assert abs(float(states[:, 0].mean()) - 2 / 3) < 0.02


@pytest.mark.parametrize("text", ["x < 0.5", "x + y <= 1", "x - y <= 0.00001 and y - x <= 0.00001"])
def test_copies_and_pickles_draw_the_same_states(text: str) -> None:
    starts = starts_of(UNIT, text)
    mine = starts.sample(20, np.random.default_rng(2))
    for other in (pickle.loads(pickle.dumps(starts)), copy.deepcopy(starts)):
        assert (other.sample(20, np.random.default_rng(2)) == mine).all()


def test_contains_is_exact_at_the_bounds() -> None:
    starts = starts_of(UNIT, "x < 0.5 and y >= 0.5")
    assert starts.contains([math.nextafter(0.5, 0), 0.5])
    assert not starts.contains([0.5, 0.5])
    assert not starts.contains([0.4, math.nextafter(0.5, 0)])
    assert not starts.contains([0.4, 1.5])
