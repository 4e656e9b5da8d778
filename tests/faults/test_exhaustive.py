"""Faults in all states that a policy can visit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, make_decider
from safetest_gym.faults import find_faults, reachable_faults
from safetest_gym.fuzzing import Fuzzer
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task
from tests.oracles.deciding import BruteDecider
from tests.oracles.fuzzing import SlowFuzzing
from tests.oracles.random_tasks import random_task

Key = tuple[Any, ...]


def setting(seed: int) -> tuple[Task, RandomPolicy]:
    task = random_task(seed, states=18)
    return task, RandomPolicy(Interface.of(task), seed)


def visited(task: Task, slow: SlowFuzzing, starts: Any) -> set[Key]:
    """Not failing, no goal, with an action: states in which the policy decides."""
    known, open_ = set[Key](), [tuple(start.tolist()) for start in starts]
    while open_:
        state = open_.pop()
        vector = np.array(state, task.dtype)
        over = task.is_failing(vector) or task.is_goal(vector)
        if state in known or over or not task.applicable(vector).any():
            continue
        known.add(state)
        open_ += slow.outcomes(state)
    return known


@pytest.mark.parametrize("seed", range(12))
def test_all_faults_of_the_definition_are_found_and_no_other(seed: int) -> None:
    task, policy = setting(seed)
    starts = task.initial.enumerate(100)
    brute, slow = BruteDecider(task, policy, math.inf), SlowFuzzing(task, policy)
    expected = {
        state
        for state in visited(task, slow, starts)
        if brute.is_safe(state) and not all(map(brute.is_safe, slow.outcomes(state)))
    }
    found = reachable_faults(task, policy, starts, make_decider("otf", task), max_states=1000)
    assert {tuple(fault.state.tolist()) for fault in found} == expected
    assert len(found) == len(expected)
    for fault in found:
        state = tuple(fault.state.tolist())
        assert fault.action == slow.action(state)
        assert tuple(fault.outcome.tolist()) in slow.outcomes(state)
        assert not brute.is_safe(tuple(fault.outcome.tolist()))
        assert (brute.safe_actions(fault.state).nonzero()[0] == fault.alternatives).all()


@pytest.mark.parametrize("seed", range(6))
def test_faults_on_runs_are_among_them(seed: int) -> None:
    task, policy = setting(seed)
    decider = make_decider("otf", task)
    on_runs = find_faults(task, policy, Fuzzer(task, policy).run(50), decider).faults
    starts = task.initial.enumerate(100)
    found = reachable_faults(task, policy, starts, decider, max_states=1000)
    assert {f.state.tobytes() for f in on_runs} <= {f.state.tobytes() for f in found}


def test_what_the_decider_leaves_open_is_no_fault() -> None:
    task, policy = setting(3)
    decider = make_decider("otf", task, budget=Budget(states=1))
    assert reachable_faults(task, policy, task.initial.enumerate(100), decider, max_states=50) == ()


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_states_hides_faults_but_makes_up_none(seed: int) -> None:
    task, policy = setting(seed)
    starts, decider = task.initial.enumerate(100), make_decider("otf", task)
    every = reachable_faults(task, policy, starts, decider, max_states=1000)
    keys = {fault.state.tobytes(): fault for fault in every}
    for most in (1, 3, 6, 10):
        for fault in reachable_faults(task, policy, starts, decider, max_states=most):
            whole = keys[fault.state.tobytes()]
            assert (fault.action, fault.alternatives) == (whole.action, whole.alternatives)
