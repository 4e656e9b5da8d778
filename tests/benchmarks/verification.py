"""Which policies are proved safe or refuted, at what cost, and how long proofs take to check.

Run from the checkout: ``python -m tests.benchmarks.verification [CASE]... [--out FILE]``.
The tasks are those of [C] Table 1 that are proved there or run out of memory there, and the
longer parked lines, whose start states are beyond number. Policies: ``rule``, a safe tree
written by hand; ``distilled``, twenty trees taught by it; ``table``, the decider's own safe
way; ``random``, twenty random trees. CPU seconds, machine code loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time
from typing import Any, Literal

from safetest_gym.bench.timing import peak_megabytes
from tests.benchmarks.harness import Facts, Report, Runner, Work, main

SAMPLE = 500
"""States of a listed proof that are checked; boxes are all checked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One verification."""

    task: str
    policy: Literal["distilled", "random", "rule", "table"]
    method: Literal["explicit", "abstract"]
    parameters: dict[str, Any] = field(default_factory=dict)


PARKED = {"packages": 15, "locations": 10, "variant": "icy_park"}
LONG = {"packages": 30, "locations": 20, "variant": "icy_park"}
CASES = {
    "one way parked": Case(task="OneWayLine", policy="rule", method="explicit", parameters=PARKED),
    "one way parked distilled": Case(
        task="OneWayLine", policy="distilled", method="explicit", parameters=PARKED
    ),
    "one way parked boxes": Case(
        task="OneWayLine", policy="rule", method="abstract", parameters=PARKED
    ),
    "one way": Case(task="OneWayLine", policy="rule", method="explicit"),
    "two way parked": Case(task="TwoWayLine", policy="rule", method="explicit", parameters=PARKED),
    "two way parked boxes": Case(
        task="TwoWayLine", policy="rule", method="abstract", parameters=PARKED
    ),
    "one way parked 30 20": Case(
        task="OneWayLine", policy="rule", method="abstract", parameters=LONG
    ),
    "two way parked 30 20": Case(
        task="TwoWayLine", policy="rule", method="abstract", parameters=LONG
    ),
    **{
        f"beluga {jigs} {policy}": Case(
            task="Beluga", policy=policy, method="explicit", parameters={"jigs": jigs}
        )
        for jigs in (3, 4)
        for policy in ("table", "distilled", "random")
    },
    "pendulum": Case(task="InvertedPendulum", policy="rule", method="abstract"),
    "pendulum distilled": Case(task="InvertedPendulum", policy="distilled", method="abstract"),
    "ball": Case(task="BouncingBall", policy="rule", method="abstract"),
    "ball distilled": Case(task="BouncingBall", policy="distilled", method="abstract"),
}


def _task(case: Case) -> Any:
    from safetest_gym.envs.tasks import make_generator
    from safetest_gym.task import load_task

    generator = make_generator(case.task, case.parameters)
    return load_task(generator.model(), {"properties": generator.properties()})


def _rule(case: Case, task: Any) -> Any:
    from tests.verify import policies

    if case.task == "Beluga":
        return _table(task)
    rules = {
        "BouncingBall": policies.keen_hitter,
        "InvertedPendulum": policies.steady_hand,
        "OneWayLine": policies.careful_driver,
        "TwoWayLine": policies.careful_driver,
    }
    return rules[case.task](task)


def _table(task: Any) -> Any:
    """The decider's safe actions in all that they lead to from all start states."""
    import numpy as np

    from safetest_gym.deciders import make_decider
    from safetest_gym.policies import TablePolicy
    from safetest_gym.policies.interface import Interface

    decider = make_decider("otf", task)
    rows, actions = [], []
    for start in task.initial.enumerate(1000):
        part = decider.certificate(start).policy(task)
        rows.append(part.rows)
        actions.append(part.chosen)
    listed: Any = np.concatenate(rows)
    _, first = np.unique(listed, axis=0, return_index=True)
    return TablePolicy(listed[first], np.concatenate(actions)[first], Interface.of(task))


def _policy(case: Case, task: Any) -> Any:
    from safetest_gym.policies import distil
    from tests.verify.policies import random_ensemble

    if case.policy == "random":
        return random_ensemble(task, 1, trees=20)
    if case.policy == "distilled":
        return distil(_rule(case, task).bind(task), task, runs=300, seed=1)
    return _rule(case, task)


def verification(*, case: str) -> Facts:
    """Verify a case, and check its proof or replay its run."""
    import numpy as np

    from safetest_gym.verify import Budget, check_proof, verify

    chosen = CASES[case]
    task = _task(chosen)
    policy = _policy(chosen, task)
    budget = Budget(megabytes=2000, seconds=240)
    one = task.initial.sample(1, np.random.default_rng(0))
    verify(policy, task, starts=one, method="explicit", budget=Budget(states=1000))  # loads kernels
    before = process_time()
    found = verify(policy, task, method=chosen.method, budget=budget)
    seconds = process_time() - before
    peak = peak_megabytes()
    before = process_time()
    if found.proof is not None:
        check_proof(task, policy, found.proof, sample=SAMPLE)
    if found.run is not None:
        found.run.replay(task, policy)
    return {
        "verdict": found.verdict.name,
        "reason": found.reason,
        "starts": task.initial.count(),
        "seconds": seconds,
        "check_seconds": process_time() - before,
        "peak_megabytes": peak,
        "run": None if found.run is None else len(found.run),
        **{f"used_{key}": value for key, value in found.statistics.items()},
    }


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("verification of policies")
    for name in CASES:
        if wanted and name not in wanted:
            continue
        facts = runner.run("verification", case=name)
        report.facts[name] = facts
        if facts is None:
            report.add(name, "did not end")
            continue
        size = facts.get("used_states", facts.get("used_boxes"))
        starts = "infinite" if facts["starts"] is None else f"{facts['starts']:.4g}"
        report.add(
            name,
            f"{facts['verdict']}, {starts} starts, {size:,} states or boxes, "
            f"{facts['seconds']:.2f} s, check {facts['check_seconds']:.2f} s, "
            f"{facts['peak_megabytes']:.0f} MB {facts['reason']}",
        )
    return report


WORKS: dict[str, Work] = {"verification": verification}

if __name__ == "__main__":
    main("tests.benchmarks.verification", WORKS, _plan)
