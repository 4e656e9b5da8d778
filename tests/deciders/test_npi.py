"""Naive policy iteration decides as the definitions say."""

from __future__ import annotations

from typing import Any

import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.envs.tasks.families import LayeredFamily
from safetest_gym.errors import ConfigError
from safetest_gym.task import Task, load_task
from tests.deciders import agreement

NAME = "npi"


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
