"""The default decider against fixpoints and brute force, on very many random systems."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.graph import build_graph
from safetest_gym.deciders.otf import OtfDecider
from safetest_gym.errors import PolicyError
from safetest_gym.policies import Interface, TablePolicy
from safetest_gym.task import load_task
from tests.deciders import agreement
from tests.deciders.agreement import KINDS, scores, table_policy, truth_of
from tests.oracles.fixpoint import radius_needed, safe_states
from tests.oracles.hashed_systems import hashed_task, states_of, systems_of


@pytest.mark.parametrize(("mode", "kind"), KINDS)
@pytest.mark.parametrize("order", ["auto", "app", "rand", "learn"])
def test_all_states_of_random_systems_are_decided_as_by_the_fixpoint(
    mode: Any, kind: Any, order: Any
) -> None:
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(range(2000))
    truth = truth_of(task, states)
    assert 0.2 < np.mean(truth == Verdict.SAFE) < 0.8
    decider = make_decider("otf", task, policy=scores(task), order=order)
    for seed in range(2):
        shuffled = np.random.default_rng(seed).permutation(len(states))
        decider.clear()
        assert np.array_equal(decider.decide_many(states[shuffled]), truth[shuffled])


@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_a_fresh_cache_gives_the_same_verdicts(mode: Any, kind: Any) -> None:
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(range(300))
    decider = make_decider("otf", task)
    found = []
    for state in states:
        decider.clear()
        found.append(decider.decide(state))
    assert np.array_equal(found, truth_of(task, states))


@pytest.mark.parametrize("mode", ["label", "edge"])
def test_changes_of_the_order_between_fresh_caches_give_the_same_verdicts(mode: Any) -> None:
    task = hashed_task(mode=mode)
    states = states_of(range(300))
    decider = OtfDecider(task)
    found, orders = [], set()
    for state in states:
        decider.forget_facts()
        found.append(decider.decide(state))
        assert decider._order is not None
        orders.add(tuple(decider._order.current))
    assert np.array_equal(found, truth_of(task, states))
    assert len(orders) > 1


@pytest.mark.parametrize("mode", ["label", "edge"])
def test_a_change_of_the_order_leaves_no_state_half_way_through_the_old_one(mode: Any) -> None:
    decider = OtfDecider(hashed_task(mode=mode))
    assert decider._order is not None
    before, changes = decider._order.current.tolist(), 0
    for state in states_of(range(600)):
        decider.decide(state)
        if decider._order.current.tolist() != before:
            before, changes = decider._order.current.tolist(), changes + 1
            open_ = decider.verdict[: decider.space.known] == Verdict.UNKNOWN
            assert (decider._current[: decider.space.known][open_] == -1).all()
            assert (decider._head[: decider.space.known] == -1).all()
    assert changes > 3


def test_single_queries_of_a_bundled_task_find_its_safe_set_while_the_order_changes() -> None:
    task = agreement.bundled("beluga")
    graph = build_graph(task, starts="default")
    order = np.random.default_rng(0).permutation(graph.num_states)[:1000]
    decider = OtfDecider(task)
    assert [decider.decide(graph.states[number]) == Verdict.SAFE for number in order] == (
        graph.safe[order].tolist()
    )


def test_many_states_at_once_are_decided_as_one_after_the_other() -> None:
    task = hashed_task()
    states = states_of(range(400))
    together, single = OtfDecider(task), OtfDecider(task)
    found = together.decide_many(states)
    assert np.array_equal(found, [single.decide(state) for state in states])
    ours, theirs = together.statistics, single.statistics
    assert (ours.expanded, ours.tried, ours.states) == (
        theirs.expanded,
        theirs.tried,
        theirs.states,
    )
    assert together._order is not None
    assert single._order is not None
    assert np.array_equal(together._order.current, single._order.current)


def test_a_budget_of_states_ends_each_of_many_queries_on_its_own() -> None:
    task = hashed_task()
    states = states_of(range(300))
    truth = truth_of(task, states)
    for limit in (5, 50, 500):
        decider = OtfDecider(task, budget=Budget(states=limit))
        found = decider.decide_many(states)
        assert (found == Verdict.UNKNOWN).any()
        assert (found[found > 0] == truth[found > 0]).all()
        decider.budget = Budget()
        assert np.array_equal(decider.decide_many(states), truth)


def test_forgetting_facts_keeps_the_order_that_was_learnt_and_clearing_does_not() -> None:
    decider = OtfDecider(hashed_task())
    decider.decide_many(states_of(range(300)))
    assert decider._order is not None
    learnt = decider._order.current.tolist()
    decider.forget_facts()
    assert decider.space.known == 0
    assert decider._order.current.tolist() == learnt != sorted(learnt)
    decider.clear()
    assert decider._order.current.tolist() == sorted(learnt)


def test_a_learnt_order_visits_fewer_states_where_the_first_actions_do_not_last(
    shared: Path,
) -> None:
    line = shared / "models" / "planning" / "one_way_line_15_10_det.jani"
    task = load_task(line, line.with_suffix(".props.jani"))
    expanded = []
    for order in ("auto", "app"):
        decider = OtfDecider(task, order=order)
        decider.decide_many(task.initial.enumerate(1000))
        expanded.append(decider.statistics.expanded)
    assert 3 * expanded[0] < expanded[1]


@pytest.mark.slow
def test_a_hundred_thousand_random_systems_agree_with_the_fixpoint() -> None:
    for (mode, kind), first in zip(KINDS, (0, 60_000, 90_000), strict=True):
        last = {0: 60_000, 60_000: 90_000, 90_000: 100_000}[first]
        task = hashed_task(mode=mode, kind=kind)
        policy = scores(task)
        for begin in range(first, last, 5000):
            states = states_of(range(begin, begin + 5000))
            truth = truth_of(task, states)
            for order in ("auto", "app", "rand", "learn"):
                decider = make_decider("otf", task, policy=policy, order=order)
                assert np.array_equal(decider.decide_many(states), truth)
            decider = make_decider("otf", task)
            for number, (state, verdict) in enumerate(zip(states, truth.tolist(), strict=True)):
                if number % 2:
                    decider.clear()
                else:
                    decider.forget_facts()
                assert decider.decide(state) == verdict


def test_settled_states_keep_no_dependants() -> None:
    decider = OtfDecider(hashed_task())
    for state in states_of(range(300)):
        decider.decide(state)
        settled = decider.verdict[: decider.space.known] != Verdict.UNKNOWN
        assert (decider._head[: decider.space.known][settled] == -1).all()


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_finite_radii_agree_with_brute_force_over_all_policies(mode: Any, radius: int) -> None:
    task = hashed_task(places=6, mode=mode)
    states = states_of(range(400), places=6)
    systems = systems_of(task, states)
    policy, own = table_policy(task, states, systems, seed=radius)
    needed = [
        r
        for system, actions in zip(systems, own, strict=True)
        for r in radius_needed(system, actions)
    ]
    truth = np.where(np.array(needed) <= radius, Verdict.SAFE, Verdict.UNSAFE)
    assert any(radius < r < math.inf for r in needed) or radius == 3
    for order in ("auto", "app", "rand"):
        decider = make_decider("otf", task, policy=policy, radius=radius, order=order)
        assert np.array_equal(decider.decide_many(states), truth)
    for state, verdict in zip(states[:200], truth.tolist(), strict=False):
        decider.clear()
        assert decider.decide(state) == verdict


def test_safe_by_deviating_again_and_again_in_a_cycle_is_not_safe_for_any_radius() -> None:
    found = False
    task = hashed_task(places=6)
    states = states_of(range(400), places=6)
    systems = systems_of(task, states)
    policy, own = table_policy(task, states, systems, seed=1)
    forever = make_decider("otf", task).decide_many(states)
    often = make_decider("otf", task, policy=policy, radius=50).decide_many(states)
    assert set(np.flatnonzero(often == Verdict.SAFE)) < set(np.flatnonzero(forever == Verdict.SAFE))
    at = 0
    for system, actions in zip(systems, own, strict=True):
        for s, r in enumerate(radius_needed(system, actions)):
            if r == math.inf and s in safe_states(system):
                assert often[at + s] == Verdict.UNSAFE
                found = True
        at += len(system.failing)
    assert found


def test_a_policy_without_an_action_is_an_error_with_a_finite_radius() -> None:
    task = hashed_task()
    policy = TablePolicy(np.array([[0, 0]]), np.array([0]), Interface.of(task))
    decider = make_decider("otf", task, policy=policy, radius=1)
    with pytest.raises(PolicyError, match="no action in"):
        decider.decide_many(states_of(range(50)))
