from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from safetest_gym.engine import machine
from safetest_gym.errors import ConfigError
from safetest_gym.faults.components import bug_regions
from safetest_gym.faults.confirmation import (
    StateBounds,
    bug_gap,
    fuzzing_bug_by_interval,
    fuzzing_bug_by_policy,
    is_fuzzing_bug,
    normalized_gap,
)
from safetest_gym.faults.objectives import GoalReaching, Safety, StepCost
from safetest_gym.faults.oracles import DeciderOracle, LookaheadOracle, PerfectOracle
from safetest_gym.policies import Interface, RandomPolicy
from tests.faults.test_objectives import KINDS, SEEDS, objective_of, plan_of, setting
from tests.oracles.deciding import BruteDecider
from tests.oracles.fuzzing import SlowFuzzing
from tests.oracles.objectives import best_value, policy_value
from tests.oracles.random_tasks import random_task


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_perfect_oracle_finds_exactly_the_bugs(seed: int, kind: str) -> None:
    task, policy, states, small = setting(seed)
    oracle = PerfectOracle(task, policy, objective_of(kind, task))
    plan = plan_of(small, policy)
    for state, found in zip(states, oracle.confirm_all(states), strict=True):
        key = tuple(state.tolist())
        mine = policy_value(kind, small, plan, key)
        best = best_value(kind, small, key)
        gap = 0.0 if mine == best else abs(mine - best)
        assert (found is not None) == (gap > 1e-6)
        if found is not None:
            assert found.gap == pytest.approx(gap, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_lookahead_finds_bugs_only_and_more_with_more_depth(
    seed: int, depth: int, kind: str
) -> None:
    task, policy, states, _ = setting(seed)
    objective = objective_of(kind, task)
    perfect = PerfectOracle(task, policy, objective).confirm_all(states)
    shallow = LookaheadOracle(task, policy, objective, depth=depth)
    deeper = LookaheadOracle(task, policy, objective, depth=depth + 1)
    for state, truth in zip(states, perfect, strict=True):
        found, more = shallow.confirm(state), deeper.confirm(state)
        if found is not None:
            assert truth is not None
            assert found.gap <= truth.gap + 1e-6
            assert more is not None
            assert more.gap >= found.gap - 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_lookahead_as_deep_as_the_task_is_perfect_for_costs(seed: int) -> None:
    task, policy, states, _ = setting(seed)
    objective = StepCost(task)
    perfect = PerfectOracle(task, policy, objective).confirm_all(states)
    oracle = LookaheadOracle(task, policy, objective, depth=12)
    for state, truth in zip(states, perfect, strict=True):
        assert (oracle.confirm(state) is None) == (truth is None)


@pytest.mark.parametrize("seed", range(8))
def test_the_decider_oracle_finds_the_bugs_of_safety_and_their_severity(seed: int) -> None:
    task = random_task(seed, states=14)
    policy = RandomPolicy(Interface.of(task), seed)
    slow = SlowFuzzing(task, policy)
    brute = BruteDecider(task)

    def severity(radius: float) -> BruteDecider:
        return BruteDecider(task, policy, radius)

    oracle = DeciderOracle(task, policy, brute, severity=severity)
    for state in task.initial.enumerate(100):
        key = tuple(state.tolist())
        found = oracle.confirm(state)
        assert (found is not None) == (slow.fails(key) and brute.is_safe(key))
        if found is not None:
            radii = [r for r in (0, 1, 2) if severity(r).is_safe(key)]
            assert found.radius == (radii[0] if radii else math.inf)
            assert found.radius != 0  # without a deviation the policy fails


def test_a_cut_exploration_reports_only_what_is_proved() -> None:
    for seed in SEEDS:
        task, policy, states, _ = setting(seed)
        for objective in (Safety(), GoalReaching(), StepCost(task)):
            whole = PerfectOracle(task, policy, objective)
            cut = PerfectOracle(task, policy, objective, limit=3)
            for state in states:
                found, truth = cut.confirm(state), whole.confirm(state)
                assert found is None or (truth is not None and found.gap <= truth.gap)


def test_bug_regions_are_the_connected_parts_of_the_bug_states() -> None:
    for seed in range(8):
        task = random_task(seed, states=30, actions=1, outcomes=1)
        states = task.initial.enumerate(100)[::2]
        parts = {tuple(state): {tuple(state)} for state in states.tolist()}
        for state in states:
            if task.classify(state.reshape(1, -1))[0]:
                continue
            for _, outcomes in task.successors(state):
                for _, outcome in outcomes:
                    if tuple(outcome.tolist()) in parts:
                        joined = parts[tuple(state.tolist())] | parts[tuple(outcome.tolist())]
                        parts.update(dict.fromkeys(joined, joined))
        regions = bug_regions(task, states)
        found: dict[int, set[tuple[int, ...]]] = {}
        for state, region in zip(states.tolist(), regions.tolist(), strict=True):
            found.setdefault(region, set()).add(tuple(state))
        expected = {frozenset(part) for part in parts.values()}
        assert {frozenset(part) for part in found.values()} == expected
        assert regions[0] == 0


@pytest.mark.parametrize("minimize", [True, False])
def test_confirmation_rules_never_call_a_state_a_bug_that_is_none(minimize: bool) -> None:
    rng = np.random.default_rng(0)
    objective = Safety() if minimize else GoalReaching()
    sign = 1 if minimize else -1
    confirmed = [0, 0, 0]
    for _ in range(4000):
        facts, values = [], []
        for _ in range(2):
            best = int(rng.integers(0, 12))
            mine = best + sign * int(rng.integers(0, 8)) * int(rng.integers(0, 2))
            optimistic = best - sign * int(rng.integers(0, 3))
            pessimistic = best + sign * int(rng.integers(0, 3))
            facts.append(StateBounds(mine, optimistic, pessimistic))
            values.append((mine, best))
        after, before = facts
        truth = is_fuzzing_bug(*values[0], values[1])
        rules = (
            fuzzing_bug_by_policy(objective, after, before),
            fuzzing_bug_by_interval(objective, after, before),
        )
        gap = bug_gap(objective, after.policy, after.pessimistic)
        assert gap <= abs(values[0][0] - values[0][1])
        assert truth or not any(rules)
        assert gap > 0 or not any(rules)  # [F] Theorem 12
        confirmed = [n + bool(c) for n, c in zip(confirmed, (gap, *rules), strict=True)]
    assert min(confirmed) > 20


def test_normalized_gaps_relate_to_the_optimum() -> None:
    assert normalized_gap(3.0, 6.0) == 0.5
    assert normalized_gap(3.0, 0.0) is None
    assert bug_gap(StepCost(random_task(1)), math.inf, 4.0) == math.inf
    assert bug_gap(Safety(), math.inf, math.inf) == 0.0


def test_a_lookahead_of_no_step_is_refused() -> None:
    task, policy, _, _ = setting(1)
    with pytest.raises(ConfigError, match="depth"):
        LookaheadOracle(task, policy, Safety(), depth=0)
