"""Cuts hold for every change that meets the demands, and the one missed by most is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetest_gym.repair.bound import disjunctive_cuts, relaxed, weakest_cuts
from safetest_gym.repair.problem import Features, RepairProblem
from safetest_gym.repair.solver import choose_solver


def _problem(rng: np.random.Generator, *, is_strong: bool, is_dense: bool) -> RepairProblem:
    """Five groups over six features and four actions."""
    groups, features, actions, width = 5, 6, 4, 3
    index = np.array([rng.choice(features, width, replace=False) for _ in range(groups)])
    value = rng.normal(size=(groups, width)) if is_dense else np.ones((groups, width))
    base = rng.normal(size=(groups, actions))
    bad = rng.random((groups, actions)) < (0.5 if is_strong else 0.0)
    bad[np.arange(groups), base.argmax(axis=1)] = True
    good = ~bad & (rng.random((groups, actions)) < 0.8)
    good[np.arange(groups), base.argmin(axis=1)] |= ~good.any(axis=1)
    bad &= ~good
    allowed = rng.random((features, actions)) < 0.9
    margin, weight = np.full(groups, 1e-3), np.full(groups, np.inf)
    parts = Features(index.astype(np.int32), value, base, allowed)
    return RepairProblem(parts, good, bad, margin, weight, np.arange(groups), groups)


def _weights(problem: RepairProblem, group: int) -> tuple[int, dict[int, float]]:
    """The worst bad action, and of every good one 1 over what it lacks to beat it."""
    base = problem.features.base[group]
    worst = max(np.flatnonzero(problem.bad[group]), key=lambda a: base[a])
    lacks = {int(a): 1e-3 - base[a] + base[worst] for a in np.flatnonzero(problem.good[group])}
    return int(worst), {a: 1 / lack for a, lack in lacks.items()}


def _left_side(problem: RepairProblem, group: int, parts: Any, far: float) -> float:
    """Of a cut, from its definition: the largest coefficient of all good actions counts."""
    features, actions = problem.features, problem.num_actions
    worst, weights = _weights(problem, group)
    options = []
    for a, weight in weights.items():
        row = np.zeros((2, len(features.allowed), actions))
        for k, v in zip(features.index[group], features.value[group], strict=True):
            for action, sign in ((a, 1.0), (worst, -1.0)):
                coefficient = sign * v * max(weight, far) * features.allowed[k, action]
                row[0, k, action] += coefficient
                row[1, k, action] -= coefficient
        options.append(row.ravel())
    return float(np.max(options, axis=0) @ parts)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), is_strong=st.booleans(), is_dense=st.booleans())
def test_every_cut_holds_for_every_change_that_meets_its_demand(
    seed: int, is_strong: bool, is_dense: bool
) -> None:
    rng = np.random.default_rng(seed)
    problem = _problem(rng, is_strong=is_strong, is_dense=is_dense)
    shape = problem.features.allowed.shape
    for _ in range(20):
        change = rng.normal(0, 3, shape) * problem.features.allowed
        holds = problem.shortfall(change) <= 0
        parts = np.concatenate([np.maximum(change, 0).ravel(), np.maximum(-change, 0).ravel()])
        for group in range(len(problem)):
            alone = problem.take(np.array([group]))
            far = np.array([rng.choice(list(_weights(problem, group)[1].values()))])
            cut = disjunctive_cuts(alone, far)
            if cut.shape[0]:
                left = (cut @ parts)[0]
                assert left == pytest.approx(_left_side(problem, group, parts, far[0]))
                assert left >= 1 - 1e-9 or not holds[group]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), is_dense=st.booleans())
def test_of_all_cuts_the_one_that_a_point_misses_by_most_is_found(
    seed: int, is_dense: bool
) -> None:
    rng = np.random.default_rng(seed)
    problem = _problem(rng, is_strong=False, is_dense=is_dense)
    problem = problem.take(np.flatnonzero(problem.shortfall(np.zeros((6, 4))) > 0))
    parts = rng.random(2 * problem.features.allowed.size)
    parts *= np.tile(problem.features.allowed.ravel(), 2)
    value, far = weakest_cuts(problem, parts)
    for group in range(len(problem)):
        weights = _weights(problem, group)[1].values()
        sides = {weight: _left_side(problem, group, parts, weight) for weight in weights}
        assert value[group] == pytest.approx(min(sides.values()))
        assert sides[min(weights, key=lambda w: abs(w - far[group]))] == pytest.approx(value[group])


def test_parts_that_raise_the_bad_action_count_against_a_cut() -> None:
    """One group, two good actions that lack 1 and 2: raising the bad action by 1 costs more."""
    features = Features(
        np.zeros((1, 1), np.int32),
        np.ones((1, 1)),
        np.array([[2.0, 1.0, 0.0]]),
        np.ones((1, 3), np.bool_),
    )
    bad = np.array([[True, False, False]])
    one = np.ones(1)
    problem = RepairProblem(features, ~bad, bad, 0 * one, one * np.inf, np.zeros(1, np.int64), 1)
    rows = [disjunctive_cuts(problem, far * one).toarray()[0] for far in (0.5, 1.0)]
    np.testing.assert_allclose(rows[0], [-0.5, 1.0, 0.5, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(rows[1], [-1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    assert relaxed(problem, one, choose_solver("highs"), 0.7).bound == pytest.approx(1.0, rel=1e-5)
