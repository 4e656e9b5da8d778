"""New trees tell contradicting demands apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.engine.kernels.separation import CONSISTENT, split_kernel
from safetest_gym.repair.ranking import Demand, contradicting
from safetest_gym.repair.separation import _CANDIDATES, _words, with_separation
from tests.oracles.separation import best_split
from tests.repair.faulty import forest


def _demands(rng: np.random.Generator, count: int, actions: int) -> list[Demand]:
    """Each with a good and a bad action, and some with neither."""
    found = []
    for _ in range(count):
        part = rng.integers(0, 3, actions)
        sides = [sum(1 << int(a) for a in np.flatnonzero(part == side)) for side in (1, 2)]
        found.append((sides[0], sides[1] if sides[0] else 0))
    return found


def _points(rng: np.random.Generator, count: int, features: int) -> Any:
    """All different; some neighbouring values have no float32 between them."""
    points = rng.integers(0, 40, (4 * count, features)).astype(np.float32)
    tiny = points[:, 0] == 3
    points[tiny, 0] = np.nextafter(np.float32(2), np.float32(3))
    points = np.unique(points, axis=0)
    return rng.permutation(points)[:count]


@pytest.mark.parametrize("actions", [2, 5, 70])
@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_finds_the_split_that_its_slow_twin_finds(seed: int, actions: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 80))
    points = _points(rng, count, 3)
    demands = _demands(rng, count, actions)
    kinds = list(dict.fromkeys(demands))
    kind = np.array([kinds.index(demand) for demand in demands])
    sets = [_words([demand[side] for demand in kinds], actions) for side in range(2)]
    wanted = (*sets, _words([(1 << actions) - 1], actions)[0])
    rows = np.flatnonzero(rng.random(count) < 0.8)
    own = best_split(points[rows], [demands[r] for r in rows], actions, _CANDIDATES)
    feature, threshold = split_kernel(points, rows, kind, wanted, _CANDIDATES)
    assert (feature, threshold) == ((CONSISTENT, 0.0) if own is None else own)


@pytest.mark.parametrize("seed", range(6))
def test_no_leaf_of_a_new_tree_has_contradicting_demands(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = forest(seed, trees=2, nodes=3, actions=4, vector=seed % 2 == 0)
    points = _points(rng, 60, len(policy.interface.columns))
    demands = _demands(rng, len(points), 4)
    separated, count = with_separation(policy, points, demands)
    assert count == (1 if seed % 2 == 0 else 4)
    tree = separated.trees[-1]
    leaves: dict[int, list[Demand]] = {}
    for point, demand in zip(points, demands, strict=True):
        node = 0
        while tree.left[node] >= 0:
            goes_left = point[tree.feature[node]] < tree.threshold[node]
            node = int((tree.left if goes_left else tree.right)[node])
        leaves.setdefault(node, []).append(demand)
    assert len(leaves) > 1
    assert not any(contradicting(members, 4) for members in leaves.values())
    assert not tree.values.any()


def test_demands_on_equal_points_that_contradict_each_other_are_not_passed_over() -> None:
    policy = forest(0, trees=2, nodes=3, actions=4, vector=True)
    points = np.zeros((2, len(policy.interface.columns)), np.float32)
    with pytest.raises(AssertionError, match="equal points"):
        with_separation(policy, points, [(1, 2), (2, 1)])
