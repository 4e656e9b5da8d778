"""What every algorithm owes: each decides, proves, stops and recovers like the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.errors import ConfigError
from tests.deciders import agreement
from tests.oracles.hashed_systems import hashed_task, states_of

ALL_ORDERS = ("app", "learn", "rand")
ORDERS: dict[str, tuple[str, ...]] = {
    "tarjan": ALL_ORDERS,
    "ipi": ALL_ORDERS,
    "npi": ALL_ORDERS,
    "lrtdp": ALL_ORDERS,
    "lao": ALL_ORDERS,
    "vi": ("app",),
    "propu": ("app",),
}
"""The algorithms, besides otf and propu-bdd, which have modules of their own."""

WITH_ORDER = [(name, order) for name, orders in ORDERS.items() for order in orders]
WITH_RADIUS = ("tarjan", "lrtdp", "lao", "vi")
FOR_LONG_PATHS = {"ipi": 50_000, "npi": 50_000, "propu": 50_000, "vi": 50_000, "lrtdp": 20_000}
FOR_LONG_PATHS["lao"] = 150  # quadratic: every round starts at the root

SYSTEMS = 100_000
"""That every algorithm agrees on, over all its orders."""


@pytest.mark.parametrize(("mode", "kind"), agreement.KINDS)
@pytest.mark.parametrize(("name", "order"), WITH_ORDER)
def test_all_states_of_random_systems_are_decided_as_by_the_fixpoint(
    name: str, order: Any, mode: Any, kind: Any
) -> None:
    agreement.agrees_on_random_systems(name, order, mode, kind, systems=range(300), fresh=200)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "order"), WITH_ORDER)
def test_a_hundred_thousand_random_systems_are_decided_as_by_the_fixpoint(
    name: str, order: Any
) -> None:
    share = -(-SYSTEMS // len(ORDERS[name]))
    begin = ORDERS[name].index(order) * share
    for first in range(begin, begin + share, 2000):
        mode, kind = agreement.KINDS[first // 2000 % 3]
        last = min(first + 2000, begin + share)
        agreement.agrees_on_random_systems(
            name, order, mode, kind, systems=range(first, last), fresh=500
        )


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("name", WITH_RADIUS)
def test_finite_radii_agree_with_brute_force_over_all_policies(
    name: str, mode: Any, radius: int
) -> None:
    orders = [order for order in ORDERS[name] if order != "learn"]  # a table has no scores
    agreement.agrees_with_brute_force(name, radius, mode, systems=range(250), orders=orders)


@pytest.mark.parametrize("task", agreement.BUNDLED)
@pytest.mark.parametrize(("name", "order"), WITH_ORDER)
def test_bundled_tasks_are_decided_as_by_otf(name: str, task: str, order: Any) -> None:
    agreement.agrees_on_a_bundled_task(name, agreement.bundled(task), order=order)


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("task", agreement.BUNDLED)
@pytest.mark.parametrize("name", WITH_RADIUS)
def test_bundled_tasks_are_decided_as_by_otf_with_a_radius(
    name: str, task: str, radius: int
) -> None:
    agreement.agrees_on_a_bundled_task(name, agreement.bundled(task), radius=radius)


@pytest.mark.parametrize(
    ("name", "radius"),
    [*((name, math.inf) for name in ORDERS), *((name, r) for name in WITH_RADIUS for r in (0, 1))],
)
def test_certificates_prove_the_verdicts(name: str, radius: float) -> None:
    agreement.proves_its_verdicts(name, radius=radius)


@pytest.mark.parametrize("name", sorted(ORDERS.keys() - set(WITH_RADIUS)))
def test_an_algorithm_that_knows_no_radius_refuses_a_finite_one(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot decide with a finite radius"):
        make_decider(name, agreement.layers(2), radius=1)


@pytest.mark.parametrize("name", ["vi", "propu"])
def test_an_order_of_actions_that_makes_no_difference_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="has the orders app, but not rand"):
        make_decider(name, agreement.layers(2), order="rand")


@pytest.mark.parametrize("name", ORDERS)
def test_what_an_unfinished_search_leaves_behind_misleads_no_other_query(name: str) -> None:
    agreement.agrees_after_broken_off_searches(name)


@pytest.mark.parametrize("name", ORDERS)
def test_an_error_is_explained_every_time_and_hurts_no_other_query(name: str) -> None:
    agreement.survives_errors(name)


@pytest.mark.parametrize(("name", "layers"), FOR_LONG_PATHS.items())
def test_a_long_path_needs_no_recursion_and_a_raised_budget_goes_on(name: str, layers: int) -> None:
    task = agreement.layers(layers)
    start = task.initial.enumerate(1)[0]
    decider = make_decider(name, task, budget=Budget(states=layers))
    for _ in range(2):
        assert decider.decide(start) is Verdict.UNKNOWN
    expanded = decider.statistics.expanded
    assert expanded > 0
    decider.budget = Budget(seconds=1e-9)
    assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget()
    assert decider.decide(start) is Verdict.SAFE
    assert decider.statistics.expanded == 2 * layers + 2


@pytest.mark.parametrize("target", ["otf", *ORDERS])
@pytest.mark.parametrize("source", ["otf", "tarjan", "lrtdp"])
def test_facts_of_any_algorithm_can_be_used_and_proved_by_any_other(
    source: str, target: str, tmp_path: Path
) -> None:
    task = hashed_task()
    states = states_of(range(40))
    teacher = make_decider(source, task)
    for state in states[::3]:
        teacher.decide(state)
    teacher.save(tmp_path / "facts.npz")
    learner = make_decider(target, task)
    learner.load(tmp_path / "facts.npz")
    truth = make_decider("otf", task)
    for state in states:
        certificate = learner.certificate(state)
        assert certificate.verdict is truth.decide(state)
        check_certificate(task, certificate)


@pytest.mark.parametrize("name", ["otf", *ORDERS])
def test_facts_loaded_amid_a_search_are_heeded_by_it(name: str, tmp_path: Path) -> None:
    task = hashed_task()
    states = states_of(range(300))
    teacher = make_decider("otf", task)
    truth = teacher.decide_many(states)
    teacher.clear()
    teacher.decide_many(states[::3])
    teacher.save(tmp_path / "facts.npz")
    for most in (200, 400, 600):
        decider = make_decider(name, task, budget=Budget(states=most))
        for state in states[::7]:
            decider.decide(state)
        decider.load(tmp_path / "facts.npz")
        decider.budget = Budget()
        assert np.array_equal(decider.decide_many(states), truth)
