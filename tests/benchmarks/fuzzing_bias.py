"""Does bias pay? Unsafe runs found by each way of fuzzing, as in [J] Fig. 2.

Run from the checkout: ``python -m tests.benchmarks.fuzzing_bias``. Policies take safe actions
but for a part of the states, so that failing is possible and rare.
"""

from __future__ import annotations

import math
from typing import Any

from safetest_gym.fuzzing import End, FuzzBudget, Fuzzer
from safetest_gym.task import load_task
from tests.benchmarks.harness import SHARED, Facts, Report, Runner, main, stopwatch
from tests.oracles.careful_policy import CarefulPolicy

PLANNING = SHARED / "models" / "planning"
WAYS: tuple[tuple[Any, float], ...] = (
    ("uniform", 1),
    ("greedy", 1),
    ("weighted", 1),
    ("greedy", math.inf),
    ("weighted", math.inf),
)
MODELS = {
    "beluga_3_2": 30,
    "blocksworld_4_3_bound2": 3,
    "blocksworld_4_3_nocost": 3,
    "mars_mini": 3,
    "one_way_line_15_10_icy_park": 30,
    "one_way_line_5_10_nod_nop": 30,
    "one_way_line_5_10_nod_p": 30,
    "transport_4_5": 3,
    "two_way_line_4_10_nod_nop": 30,
    "two_way_line_4_10_nod_p": 30,
}
"""Non-deterministic models, and of how many states one is careless."""

RUNS = 500


def compare(*, model: str, holes: int, seed: int) -> Facts:
    """Unsafe runs and CPU seconds of every way, with one policy."""
    task = load_task(PLANNING / f"{model}.jani", PLANNING / f"{model}.props.jani")
    facts: Facts = {}
    for strategy, lookahead in WAYS:
        policy = CarefulPolicy.of(task, seed, holes)
        fuzzer = Fuzzer(
            task,
            policy,
            strategy=strategy,
            lookahead=lookahead,
            max_steps=200,
            budget=FuzzBudget(search=3_000),
            seed=1,
        )
        with stopwatch() as watch:
            unsafe = fuzzer.run(RUNS).count(End.FAILING)
        facts[f"{strategy} {lookahead}"] = [unsafe, round(watch.seconds, 3)]
    return facts


def plan(runner: Runner, parts: frozenset[str]) -> Report:
    """One row per model and seed."""
    report = Report(f"unsafe runs of {RUNS}: uniform, then biased")
    for model, holes in MODELS.items():
        if parts and model not in parts:
            continue
        for seed in range(2):
            facts = runner.run("compare", model=model, holes=holes, seed=seed)
            if facts is None:
                continue
            counts = {way: unsafe for way, (unsafe, _) in facts.items()}
            uniform = counts.pop("uniform 1")
            unlimited = min(count for way, count in counts.items() if way.endswith("inf"))
            shown = ", ".join(f"{way} {count}" for way, count in counts.items())
            ratio = 1.0 if unlimited == uniform else unlimited / max(1, uniform)
            report.add(
                f"{model}, seed {seed}", f"uniform {uniform}; {shown}", ratio=ratio, target=1.0
            )
            report.facts[f"{model} {seed}"] = facts
    return report


if __name__ == "__main__":
    main("tests.benchmarks.fuzzing_bias", {"compare": compare}, plan)
