"""Input scaling is computed as trainers compute it, in numpy and in the kernel alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import Scaling
from safetest_gym.policies.scaling import scaled_features
from tests.oracles.policies import random_network


def test_unit_scaling_maps_bounds_to_one_and_a_constant_to_zero() -> None:
    scaling = Scaling.to_unit([0, -2, 5], [10, 4, 5])
    rows = scaling(np.array([[0, -2, 5], [10, 4, 5]]))
    assert rows.tolist() == [[-1, -1, 0], [1, 1, 0]]


def test_values_are_clipped_after_scaling() -> None:
    assert Scaling.affine([1.0], [0.1], clip=10)(np.array([[5.0], [0.95]])).tolist() == [
        [10],
        [-0.5],
    ]


def test_scaling_survives_json_with_its_infinities() -> None:
    scaling = Scaling.to_unit([0.1, 0.2], [0.7, 1.9])
    again = Scaling.from_json(scaling.as_json())
    for name in Scaling.__slots__:
        assert (getattr(scaling, name) == getattr(again, name)).all()


def test_a_scale_of_zero_is_refused() -> None:
    with pytest.raises(PolicyError, match="must be positive"):
        Scaling.affine([0.0], [0.0])


def test_the_kernel_scales_bit_for_bit_like_numpy() -> None:
    rng = np.random.default_rng(1)
    steps = (
        Scaling.to_unit(rng.normal(size=6) - 3, rng.normal(size=6) + 3),
        Scaling.affine(rng.normal(size=6), rng.random(6) + 0.01, clip=5),
    )
    plain = random_network(rng, (6, 6))
    states = rng.normal(size=(500, 6)) * 4
    features = scaled_features(states, steps)
    assert np.abs(features).max() == 5
    scaled = replace(plain, scalings=steps)
    assert (scaled.scores(states) == plain.scores(features)).all()
