"""TarjanSafe is as slow as the paper says, beyond what `test_algorithms` asks of all."""

from __future__ import annotations

from safetest_gym.deciders import Budget, Verdict, make_decider
from tests.deciders import agreement


def test_every_path_of_the_layered_family_is_walked() -> None:
    expanded = []
    for layers in (5, 6, 7):
        task = agreement.layers(layers)
        decider = make_decider("tarjan", task)
        assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.SAFE
        expanded.append(decider.statistics.expanded)
    # 2 + 4 + ... + 2 ** layers states of the layers, the first, and the last 2 ** layers times
    assert expanded == [2 ** (d + 1) - 1 + 2**d for d in (5, 6, 7)]


def test_a_path_of_any_length_needs_no_recursion_and_a_raised_budget_goes_on() -> None:
    task = agreement.layers(100_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider("tarjan", task, budget=Budget(states=150_000, seconds=0.001))
    for _ in range(3):
        assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget(seconds=0.2)
    expanded = decider.statistics.expanded
    assert decider.decide(start) is Verdict.UNKNOWN
    assert decider.statistics.expanded > expanded
