"""First-order steps do what their slow twin does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.engine.kernels.repair import (
    column_mass_kernel,
    dual_slope_kernel,
    primal_dual_kernel,
    scores_kernel,
    shortfall_kernel,
)
from safetest_gym.repair.problem import Features
from tests.oracles.first_order import comparisons, primal_dual

STATES, PARTS, ACTIONS, JUMPS = 9, 3, 5, 12


def _features(rng: np.random.Generator) -> Features:
    return Features(
        rng.integers(0, JUMPS, (STATES, PARTS), dtype=np.int32),
        rng.normal(size=(STATES, PARTS)),
        rng.normal(size=(STATES, ACTIONS)),
        rng.random((JUMPS, ACTIONS)) < 0.8,
    )


def _rows(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    owner = np.sort(rng.integers(0, STATES, 30))
    good = rng.integers(0, ACTIONS, 30)
    return owner, good, (good + rng.integers(1, ACTIONS, 30)) % ACTIONS


def _scores(features: Features, x: Any) -> Any:
    """From the definition."""
    scores = features.base.copy()
    for i, parts in enumerate(features.index):
        for k, j in enumerate(parts):
            scores[i] += features.value[i, k] * x[j]
    return scores


@pytest.mark.parametrize("seed", range(8))
def test_what_groups_miss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, x = _features(rng), rng.normal(size=(JUMPS, ACTIONS))
    good, bad = rng.random((2, STATES, ACTIONS)) < 0.4
    bad &= ~good
    bad[0] = False
    good[1], bad[1] = False, True
    margin, found = rng.random(STATES), np.empty(STATES)
    demands = (features.index, features.value, features.base, good, bad, margin)
    shortfall_kernel(demands, x, found)
    for i, scores in enumerate(_scores(features, x)):
        best = max((scores[a] for a in range(ACTIONS) if good[i, a]), default=-np.inf)
        worst = max((scores[a] for a in range(ACTIONS) if bad[i, a]), default=None)
        expected = -np.inf if worst is None else margin[i] + worst - best
        assert found[i] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_the_kernels_do_what_their_slow_twins_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, rows = _features(rng), _rows(rng)
    matrix = comparisons(features, rows)
    need, cap = rng.normal(size=30), np.where(rng.random(30) < 0.3, 0.1, np.inf)
    primal = rng.random(features.allowed.shape) * features.allowed * 0.1
    dual, y = rng.random(30) * 0.1, np.maximum(rng.normal(size=30), 0)
    x = rng.normal(size=features.allowed.shape) * features.allowed
    points = primal_dual(matrix, (need, cap), (primal.ravel(), dual), (x.ravel(), y), 25)

    data = (features.index, features.value)
    slope, mass, scores = np.empty_like(x), np.zeros_like(x), np.empty_like(features.base)
    dual_slope_kernel(*data, *rows, y, slope)
    np.testing.assert_allclose(slope.ravel(), matrix.T @ y, atol=1e-12)
    for row in zip(*rows, strict=True):
        one: Any = tuple(np.array([part]) for part in row)
        before = mass.copy()
        column_mass_kernel(*data, *one, mass)
        for j, value in zip(features.index[row[0]], features.value[row[0]], strict=True):
            before[j, list(row[1:])] += abs(value)
        np.testing.assert_allclose(mass, before)
    scores_kernel(*data, features.base, x, scores)
    np.testing.assert_allclose(scores, _scores(features, x), atol=1e-12)

    sums = np.zeros_like(x), np.zeros_like(y)
    ours = x.copy(), y.copy()
    primal_dual_kernel((*data, *rows, need, cap), (primal, dual), ours, sums, slope, 25)
    np.testing.assert_allclose(ours[0].ravel(), points[-1][0], atol=1e-9)
    np.testing.assert_allclose(ours[1], points[-1][1], atol=1e-9)
    moving = primal.ravel() > 0
    total = sum(point[0] for point in points)
    np.testing.assert_allclose(sums[0].ravel()[moving], np.asarray(total)[moving], atol=1e-8)
    np.testing.assert_allclose(sums[1], np.asarray(sum(point[1] for point in points)), atol=1e-8)
