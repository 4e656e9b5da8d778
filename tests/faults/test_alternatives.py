"""Safe actions of states, with a decider that earlier answers have filled."""

from __future__ import annotations

import numpy as np

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.faults.alternatives import safe_alternatives
from tests.oracles.deciding import BruteDecider
from tests.oracles.hashed_systems import hashed_task, states_of
from tests.verify.policies import line_task


def test_a_full_budget_hides_no_alternative() -> None:
    task, states = hashed_task(), states_of(range(1500))
    acting = np.asarray(task.applicable_many(states)).any(axis=1)
    acting &= np.array([not task.is_goal(state) for state in states])
    states = states[(make_decider("otf", task).decide_many(states) == Verdict.SAFE) & acting]
    truth = safe_alternatives(make_decider("otf", task), states)
    assert truth.any(axis=1).all()
    decider = make_decider("otf", task, budget=Budget(states=1000))
    assert (decider.action_verdicts(states) == Verdict.UNKNOWN).any()
    found = safe_alternatives(decider, states)
    assert not (found & ~truth).any()
    assert found.any(axis=1).all()


def test_a_decider_of_ones_own_is_asked_state_by_state() -> None:
    task, states = hashed_task(), states_of(range(40))
    brute = BruteDecider(task, None)
    expected = [brute.safe_actions(state) for state in states]
    assert np.array_equal(safe_alternatives(brute, states), np.array(expected, np.bool_))


def test_an_algorithm_that_forgets_nothing_is_asked_all_the_same() -> None:
    task = line_task(OneWayLine(packages=2, locations=4, variant="icy"))
    states = task.initial.enumerate(40)
    truth = safe_alternatives(make_decider("otf", task), states)
    assert np.array_equal(safe_alternatives(make_decider("propu-bdd", task), states), truth)
    assert not truth.any(axis=1).all()  # where decisions are looked at once more
