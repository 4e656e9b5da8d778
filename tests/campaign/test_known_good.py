"""Decisions that a repair protects: safe ones, made on runs to the goal."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from safetest_gym.campaign.debugging import debug_policy
from safetest_gym.campaign.debugging_config import DebugConfig
from safetest_gym.campaign.known_good import visited_on
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.deciders import make_decider
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.fuzzing import End, Fuzzer
from safetest_gym.policies import Policy, distil
from safetest_gym.task import Task, load_task
from tests.oracles.careful_policy import CarefulPolicy
from tests.oracles.deciding import BruteDecider


@cache
def _line() -> Task:
    generator = OneWayLine(packages=2, locations=6)
    return load_task(generator.model(), {"properties": generator.properties()})


@cache
def _trees() -> Policy:
    """Arrives in most runs, and fails in others."""
    return distil(CarefulPolicy.of(_line(), 1, 10), _line(), runs=300, trees=10)


def test_decisions_to_keep_are_safe_ones_of_runs_to_the_goal() -> None:
    task, brute = _line(), BruteDecider(_line())
    runs = Fuzzer(task, _trees(), max_steps=60, seed=4).run(100)
    visited = visited_on(runs, task, make_decider("otf", task), most=10_000, seed=4)
    decisions = {
        (tuple(state.tolist()), int(action), run.end is End.GOAL)
        for run in runs
        for state, action in zip(run.states[:-1], run.actions, strict=True)
    }
    assert {kind for _, _, kind in decisions} == {False, True}
    good = {
        (state, action)
        for state, action, arrives in decisions
        if arrives and brute.safe_actions(np.array(state))[action]
    }
    assert 0 < len(good) < len({(state, action) for state, action, _ in decisions})
    keep = visited.keep(10_000, 2.5)
    assert keep is not None
    assert keep.penalty == 2.5
    found = zip(keep.states.tolist(), _trees().actions(keep.states, keep.applicable), strict=True)
    assert {(tuple(state), int(action)) for state, action in found} == good
    assert len(keep) == len(good)
    few = visited.keep(7, 1.0)
    assert few is not None
    assert len(few) == 7
    assert visited.keep(0, 1.0) is None


def test_a_loop_protects_decisions_unless_it_shall_not() -> None:
    config = DebugConfig(test=TestPlan(runs=300), verify="none")
    for given, least in ((config, 100), (replace(config, keep=0), 0)):
        result = debug_policy(_line(), _trees(), config=given)
        first = result.iterations[0].repair
        assert first is not None
        assert (first["keep"] > 0) == (least > 0)
        assert least <= first["kept"] <= first["keep"]
        assert result.iterations[-1].unsafe_rate == 0
        assert result.iterations[-1].goal_rate > result.iterations[0].goal_rate
