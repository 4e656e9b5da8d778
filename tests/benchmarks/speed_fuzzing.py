"""How fast policies are run towards failing states, and faults are found on the runs.

Run from the checkout: ``python -m tests.benchmarks.speed_fuzzing``. Ratios say how many times
faster than asked for: 1000 uniform runs in 0.2 s, 1000 greedy ones in 5 s, 0.02 ms per state
whose safety is decided.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from safetest_gym.bench.timing import stopwatch
from safetest_gym.deciders import make_decider
from safetest_gym.faults import find_faults
from safetest_gym.fuzzing import Fuzzer
from safetest_gym.policies import Interface, Layer, MlpPolicy
from safetest_gym.task import Task, load_task
from tests.benchmarks.harness import SHARED, Facts, Report, Runner, main

PLANNING = SHARED / "models" / "planning"
ICY, DETERMINISTIC = "one_way_line_15_10_icy_park", "one_way_line_15_10_det"


def _task(model: str) -> Task:
    return load_task(PLANNING / f"{model}.jani", PLANNING / f"{model}.props.jani")


def _network(task: Task, seed: int) -> MlpPolicy:
    rng = np.random.default_rng(seed)
    sizes = (task.num_variables, 64, 64, task.num_actions)
    layers = []
    for i in range(3):
        weight = rng.normal(size=(sizes[i + 1], sizes[i])) / np.sqrt(sizes[i])
        kind: Any = "identity" if i == 2 else "relu"
        bias = rng.normal(size=sizes[i + 1])
        layers.append(Layer(weight.astype(np.float32), bias.astype(np.float32), kind))
    return MlpPolicy(tuple(layers), Interface.of(task))


def fuzz(*, strategy: Any, unlimited: bool, seed: int) -> Facts:
    """CPU seconds of 1000 runs on the icy line, code loaded before."""
    task = _task(ICY)
    policy = _network(task, seed)
    lookahead = math.inf if unlimited else 1
    Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, seed=7).run(1)
    fuzzer = Fuzzer(task, policy, strategy=strategy, lookahead=lookahead)
    with stopwatch() as watch:
        runs = fuzzer.run(1000)
    return {
        "seconds": watch.seconds,
        "steps": int(runs.lengths.sum()),
        "states": fuzzer.graph.size,
        **runs.counts(),
    }


def analyse(*, seed: int, warm: bool) -> Facts:
    """CPU milliseconds per state decided, on 1000 unsafe runs of the deterministic line."""
    task = _task(DETERMINISTIC)
    policy = _network(task, seed)
    runs = Fuzzer(task, policy).run(3000).unsafe()[:1000]
    find_faults(task, policy, runs[:1], make_decider("otf", task))
    decider = make_decider("otf", task)
    if warm:
        find_faults(task, policy, runs, decider)
    with stopwatch() as watch:
        found = find_faults(task, policy, runs, decider)
    return {
        "runs": len(runs),
        "tested": found.tested,
        "faults": len(found.faults),
        "milliseconds": 1000 * watch.seconds / max(1, found.tested),
    }


def plan(runner: Runner, parts: frozenset[str]) -> Report:
    """Every figure for three random networks."""
    report = Report("fuzzing and fault analysis")
    for seed in range(3):
        for strategy, unlimited, target in (
            ("uniform", False, 0.2),
            ("greedy", True, 5.0),
            ("weighted", True, 5.0),
        ):
            facts = runner.run("fuzz", strategy=strategy, unlimited=unlimited, seed=seed)
            assert facts is not None
            name = f"1000 {strategy} runs{' without limit' if unlimited else ''}, network {seed}"
            report.add(name, f"{facts['seconds']:.3f} s", ratio=target / facts["seconds"], target=1)
            report.facts[name] = facts
        for warm in (False, True):
            facts = runner.run("analyse", seed=seed, warm=warm)
            assert facts is not None
            name = f"fault analysis, cache {'warm' if warm else 'cold'}, network {seed}"
            shown = f"{facts['milliseconds']:.4f} ms per state"
            report.add(name, shown, ratio=0.02 / facts["milliseconds"], target=1)
            report.facts[name] = facts
    return report


if __name__ == "__main__":
    main("tests.benchmarks.speed_fuzzing", {"fuzz": fuzz, "analyse": analyse}, plan)
