"""Improved policy iteration decides as the definitions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.ipi import IpiDecider
from safetest_gym.envs.tasks.families import LayeredFamily, OuterLoop
from safetest_gym.errors import ConfigError
from safetest_gym.task import Task, load_task
from tests.deciders import agreement
from tests.oracles.hashed_systems import hashed_task, states_of

NAME = "ipi"


@pytest.mark.parametrize(("mode", "kind"), agreement.KINDS)
@pytest.mark.parametrize("order", ["app", "learn", "rand"])
def test_all_states_of_random_systems_are_decided_as_by_the_fixpoint(
    order: Any, mode: Any, kind: Any
) -> None:
    agreement.agrees_on_random_systems(NAME, order, mode, kind, systems=range(300), fresh=200)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["app", "learn", "rand"])
def test_very_many_random_systems_are_decided_as_by_the_fixpoint(order: Any) -> None:
    for (mode, kind), begin in zip(agreement.KINDS, (300, 60_000, 90_000), strict=True):
        for first in range(begin, begin + 8000, 2000):
            agreement.agrees_on_random_systems(
                NAME, order, mode, kind, systems=range(first, first + 2000), fresh=500
            )


@pytest.mark.parametrize("order", ["app", "learn", "rand"])
@pytest.mark.parametrize("task", agreement.BUNDLED)
def test_bundled_tasks_are_decided_as_by_otf(task: str, order: Any) -> None:
    agreement.agrees_on_a_bundled_task(NAME, agreement.bundled(task), order=order)


def test_certificates_prove_the_verdicts() -> None:
    agreement.proves_its_verdicts(NAME)


def test_a_finite_radius_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot decide with a finite radius"):
        make_decider(NAME, _layers(2), radius=1)


def test_what_an_unfinished_search_leaves_behind_misleads_no_other_query() -> None:
    agreement.agrees_after_broken_off_searches(NAME)


def test_an_error_is_explained_every_time_and_hurts_no_other_query() -> None:
    agreement.survives_errors(NAME)


def _layers(layers: int) -> Task:
    family = LayeredFamily(layers=layers)
    return load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")


def test_a_long_path_needs_no_recursion_and_a_raised_budget_goes_on() -> None:
    task = _layers(50000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider(NAME, task, budget=Budget(states=50000))
    for _ in range(2):
        assert decider.decide(start) is Verdict.UNKNOWN
    expanded = decider.statistics.expanded
    assert expanded > 0
    decider.budget = Budget(seconds=1e-9)
    assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget()
    assert decider.decide(start) is Verdict.SAFE
    assert decider.statistics.expanded == 100002


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_outer_loop_family_takes_a_round_for_each_state(size: int) -> None:
    family = OuterLoop(size=size)
    task = load_task(family.model(), {"properties": family.properties()})
    decider = make_decider(NAME, task)
    assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.UNSAFE
    assert decider.statistics.expanded > size * (size + 1) // 2


@pytest.mark.parametrize("order", ["app", "rand"])
def test_looking_again_before_backing_up_gives_the_same_verdicts(order: Any) -> None:
    task = hashed_task()
    states = states_of(range(500))
    plain = make_decider(NAME, task, order=order)
    again = IpiDecider(task, order=order)
    again.recheck = True
    assert again.recheck
    assert not IpiDecider(task).recheck
    assert np.array_equal(plain.decide_many(states), again.decide_many(states))
    assert again.statistics.expanded <= plain.statistics.expanded
