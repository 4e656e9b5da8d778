"""How fast environments step, one by one and in batches, beside Momba in the same run.

Actions are random applicable ones. Steps count with everything a learner needs: resets,
observations, rewards, masks; choosing the actions is not counted. For one environment the
same loop with nothing but the choices is measured as well and taken off.

Run from the checkout: ``python -m tests.benchmarks.speed_envs [single|batch|start]...``;
needs momba (the extra ``bench``) for the comparison.
"""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from typing import Any

from safetest_gym.bench.speed_work import choose_alone, step_many, walk
from tests.benchmarks.harness import Facts, Report, Runner, main
from tests.benchmarks.peer_momba import step_with_momba

LINE: dict[str, Any] = {"task": "OneWayLine", "parameters": {"packages": 15, "locations": 10}}
LARGE: dict[str, Any] = {"task": "TwoWayLine", "parameters": {"packages": 15, "locations": 50}}
"""415 edges."""
REPEATS = 7
THROUGH_MAKE, UNWRAPPED, BATCHED = 300_000, 400_000, 5_000_000
FIRST_STEP = """
import time
import gymnasium, safetest_gym
env = gymnasium.make("safetest/OneWayLine-v0")
_, info = env.reset(seed=0)
env.step(int(info["action_mask"].argmax()))
print(time.process_time())
"""


def step_one(*, task: str, parameters: dict[str, Any], steps: int, unwrapped: bool) -> Facts:
    """Steps per CPU second of one environment made by ``gym.make``; the best of some runs."""
    import gymnasium as gym

    import safetest_gym  # noqa: F401 - registers the ids

    env: Any = gym.make(f"safetest/{task}-v0", **parameters)
    if unwrapped:
        env = env.unwrapped
    rates = []
    for repeat in range(REPEATS):
        masks: list[bytes] = []
        env.reset(seed=repeat)
        full = walk(env, _numbers(repeat, steps), masks)
        choosing = choose_alone(masks, _numbers(repeat, steps))
        rates.append((steps / (full - choosing), steps / full))
    rate, with_choices = max(rates)
    return {"rate": rate, "with_choices": with_choices, "edges": _edges(env)}


def _numbers(seed: int, count: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.random() for _ in range(count)]


def _edges(env: Any) -> int:
    return sum(len(automaton.edges) for automaton in env.unwrapped.task.model.automata)


def step_batch(*, task: str, parameters: dict[str, Any]) -> Facts:
    """Steps per CPU second of 1024 copies, as `safetest-gym bench speed` counts them."""
    return step_many(task, parameters, rounds=1000, passes=REPEATS)


def _measure_single(runner: Runner, report: Report) -> None:
    works: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("one_way_line", LINE, 1),
        ("415 edges", LARGE, 2),
    )
    for name, which, divisor in works:
        made = runner.run("one", steps=200_000, unwrapped=False, **which)
        bare = runner.run("one", steps=200_000, unwrapped=True, **which)
        if made is None or bare is None:
            raise RuntimeError("stepping did not end within the cap")
        report.facts[name] = {"gym.make": made, "unwrapped": bare}
        goals = (("gym.make", made, THROUGH_MAKE), ("unwrapped", bare, UNWRAPPED))
        for form, facts, target in goals:
            rate = facts["rate"]
            text = (
                f"{rate / 1e3:.0f} k/s ({facts['with_choices'] / 1e3:.0f} k/s with choosing "
                f"actions), at least {target // divisor // 1000}"
            )
            report.add(f"{name}: {form}", text, ratio=rate * divisor / target, target=1)
        if importlib.util.find_spec("momba") is None:
            report.add(f"{name}: Momba", "not installed")
            continue
        peer = runner.run("momba", steps=3_000, repeats=REPEATS, **which)
        if peer is None:
            raise RuntimeError("Momba did not end within the cap")
        report.facts[name]["momba"] = peer
        text = f"{made['rate'] / 1e3:.0f} k/s, Momba {peer['rate'] / 1e3:.1f} k/s"
        report.add(f"{name}: Momba", text, ratio=made["rate"] / peer["rate"], target=12)


def _measure_batch(runner: Runner, report: Report) -> None:
    for name, which in (("one_way_line", LINE), ("415 edges", LARGE)):
        facts = runner.run("many", **which)
        if facts is None:
            raise RuntimeError("stepping did not end within the cap")
        report.facts[f"batch {name}"] = facts
        text = (
            f"{facts['rate'] / 1e6:.2f} million/s, overall {facts['overall'] / 1e6:.2f}; "
            f"first reset {facts['first_reset']:.2f} s"
        )
        ratio = facts["rate"] / BATCHED
        target = 1 if which is LINE else None
        report.add(f"{name}: 1024 copies", text, ratio=ratio, target=target)


def _measure_start(runner: Runner, report: Report) -> None:
    seconds = [float(_first_step()) for _ in range(REPEATS)][1:]  # the first one may compile
    report.facts["start"] = seconds
    text = f"{min(seconds):.2f} s CPU from the start of Python to the first step, below 1"
    report.add("one_way_line: start", text, ratio=1 / min(seconds), target=1)


def _first_step() -> str:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_STEP], capture_output=True, text=True, check=True
    )
    return done.stdout


_PARTS = {"single": _measure_single, "batch": _measure_batch, "start": _measure_start}


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("environments")
    for name, measure in _PARTS.items():
        if not wanted or name in wanted:
            measure(runner, report)
    return report


if __name__ == "__main__":
    main(
        "tests.benchmarks.speed_envs",
        {"one": step_one, "many": step_batch, "momba": step_with_momba},
        _plan,
    )
