"""TarjanSafe decides as the definitions say, and is as slow as the paper says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.envs.tasks.families import LayeredFamily
from safetest_gym.task import Task, load_task
from tests.deciders import agreement

NAME = "tarjan"


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


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_finite_radii_agree_with_brute_force_over_all_policies(mode: Any, radius: int) -> None:
    agreement.agrees_with_brute_force(NAME, radius, mode, systems=range(250))


@pytest.mark.parametrize("radius", [np.inf, 0, 1, 2, 3])
@pytest.mark.parametrize("task", agreement.BUNDLED)
def test_bundled_tasks_are_decided_as_by_otf(task: str, radius: float) -> None:
    agreement.agrees_on_a_bundled_task(NAME, agreement.bundled(task), radius=radius)


@pytest.mark.parametrize("radius", [np.inf, 0, 1])
def test_certificates_prove_the_verdicts(radius: float) -> None:
    agreement.proves_its_verdicts(NAME, radius=radius)


def test_what_an_unfinished_search_leaves_behind_misleads_no_other_query() -> None:
    agreement.agrees_after_broken_off_searches(NAME)


def test_an_error_is_explained_every_time_and_hurts_no_other_query() -> None:
    agreement.survives_errors(NAME)


def _layers(layers: int) -> Task:
    family = LayeredFamily(layers=layers)
    return load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")


def test_every_path_of_the_layered_family_is_walked() -> None:
    expanded = []
    for layers in (5, 6, 7):
        task = _layers(layers)
        decider = make_decider(NAME, task)
        assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.SAFE
        expanded.append(decider.statistics.expanded)
    # 2 + 4 + ... + 2 ** layers states of the layers, the first, and the last 2 ** layers times
    assert expanded == [2 ** (d + 1) - 1 + 2**d for d in (5, 6, 7)]


def test_a_path_of_any_length_needs_no_recursion_and_a_raised_budget_goes_on() -> None:
    task = _layers(100_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider(NAME, task, budget=Budget(states=150_000, seconds=0.001))
    for _ in range(3):
        assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget(seconds=0.2)
    expanded = decider.statistics.expanded
    assert decider.decide(start) is Verdict.UNKNOWN
    assert decider.statistics.expanded > expanded
