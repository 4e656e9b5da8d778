"""Does bias pay? Unsafe runs found by each way of fuzzing, as in [J] Fig. 2.

Run from the checkout: ``python -m tests.benchmarks.fuzzing_bias``; with ``--keep FILE`` it goes
on where it was. Policies take safe actions but for a part of the states, the smallest of
`PARTS` that makes uniform runs fail at all, so that failing is possible and rare.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from safetest_gym.bench.timing import stopwatch
from safetest_gym.deciders import Budget
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks import make_generator
from safetest_gym.fuzzing import End, FuzzBudget, Fuzzer
from safetest_gym.task import Task
from tests.benchmarks.harness import Facts, Report, Runner, main
from tests.oracles.careful_policy import CarefulPolicy

WAYS: tuple[tuple[Any, float], ...] = (
    ("uniform", 1),
    ("greedy", 1),
    ("weighted", 1),
    ("greedy", math.inf),
    ("weighted", math.inf),
)
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "Beluga": ("Beluga", {}),
    "Blocksworld": ("Blocksworld", {"blocks": 4, "table_limit": 3}),
    "FlappyBird": ("FlappyBird", {}),
    "NPuzzle": ("NPuzzle", {}),
    "OneWayLine icy": ("OneWayLine", {"packages": 5, "variant": "icy"}),
    "OneWayLine icy_park": ("OneWayLine", {"packages": 5, "variant": "icy_park"}),
    "Rovers": ("Rovers", {}),
    "RoversMars": ("RoversMars", {}),
    "RoversMarsMini": ("RoversMarsMini", {}),
    "RoversMarsMiniCap": ("RoversMarsMiniCap", {}),
    "TwoWayLine icy": ("TwoWayLine", {"packages": 5, "variant": "icy"}),
    "TwoWayLine icy_park": ("TwoWayLine", {"packages": 5, "variant": "icy_park"}),
}
"""Every bundled task with chance; OuterLoop and LayeredFamily always, and never, fail."""

MOST_STEPS = {"FlappyBird": 5000}
"""Steps after which a run ends, where 100 are too few: the bird flies on for ever, and only
failing ends its runs, as [J] Algorithm 1 has no limit of steps either."""

PARTS = (100, 30, 10, 3)
"""A policy is careless in one of so many states."""

RUNS = 500
LEAST = 5
"""Uniform runs that must fail before a part is taken."""

CAP_SECONDS = 1_800.0

DECIDED = 1_000_000
"""States a policy's decider may know; where it does not, it is careless too."""


def _open(name: str) -> Task:
    generator, parameters = TASKS[name]
    task, _ = open_task(make_generator(generator, parameters), {})
    return task


def compare(*, bundled: str, seed: int) -> Facts:
    """Unsafe runs and CPU seconds of every way, with one policy."""
    task = _open(bundled)
    steps = MOST_STEPS.get(bundled, 100)
    facts: Facts = {}
    for part in PARTS:
        policy = partial(CarefulPolicy.of, task, seed, part, Budget(states=DECIDED))
        facts = {"part": part, "uniform 1": _count(policy(), steps, "uniform", 1)}
        if facts["uniform 1"][0] >= LEAST:
            break
    for strategy, lookahead in WAYS[1:]:
        facts[f"{strategy} {lookahead}"] = _count(policy(), steps, strategy, lookahead)
    return facts


def _count(policy: CarefulPolicy, steps: int, strategy: Any, lookahead: float) -> list[float]:
    fuzzer = Fuzzer(
        policy.task,
        policy,
        strategy=strategy,
        lookahead=lookahead,
        max_steps=steps,
        budget=FuzzBudget(search=3_000),
        seed=1,
    )
    with stopwatch() as watch:
        unsafe = fuzzer.run(RUNS).count(End.FAILING)
    return [unsafe, round(watch.seconds, 2)]


def plan(runner: Runner, parts: frozenset[str]) -> Report:
    """One row per task and seed."""
    runner = replace(runner, cap_seconds=CAP_SECONDS)
    report = Report(f"unsafe runs of {RUNS}: uniform, then biased")
    for name in TASKS:
        if parts and name not in parts:
            continue
        for seed in range(2):
            facts = runner.run("compare", bundled=name, seed=seed)
            if facts is None:
                report.add(f"{name}, seed {seed}", f"not done in {runner.cap_seconds:g} s")
                continue
            counts = {key: found[0] for key, found in facts.items() if key != "part"}
            uniform = counts.pop("uniform 1")
            unlimited = min(count for way, count in counts.items() if way.endswith("inf"))
            shown = ", ".join(f"{way} {count}" for way, count in counts.items())
            ratio = 1.0 if unlimited == uniform else unlimited / max(1, uniform)
            report.add(
                f"{name}, seed {seed}", f"uniform {uniform}; {shown}", ratio=ratio, target=1.0
            )
            report.facts[f"{name} {seed}"] = facts
    return report


if __name__ == "__main__":
    main("tests.benchmarks.fuzzing_bias", {"compare": compare}, plan)
