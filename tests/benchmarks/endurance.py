"""Many random steps of every bundled task: no error, and memory that stays as it is.

Run from the checkout: ``python -m tests.benchmarks.endurance [NAME]...``; 10 million steps
per task, through ``gym.make_vec`` as users step.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from safetest_gym.bench.timing import stopwatch
from tests.benchmarks.harness import Facts, Report, Runner, main

__all__ = ["resident_megabytes", "walk"]

MILLIONS = 10
COPIES = 1024
ALLOWED_MEGABYTES = 8.0
"""Growth allowed from the first tenth of a run to its end: caches of the allocators."""


def resident_megabytes() -> float:
    """Memory this process holds now (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmRSS")


def walk(*, task: str, steps: int, copies: int = COPIES) -> Facts:
    """Step all copies at random, check what comes back, and watch the memory."""
    import gymnasium as gym
    import numpy as np

    import safetest_gym  # noqa: F401 - registers the ids

    envs: Any = gym.make_vec(f"safetest/{task}-v0", num_envs=copies)
    space = envs.single_observation_space
    rng = np.random.default_rng(0)
    observations, infos = envs.reset(seed=0)
    rounds = -(-steps // copies)
    ends: Counter[str] = Counter()
    memory: list[float] = []
    with stopwatch() as watch:
        for turn in range(rounds):
            mask = infos["action_mask"]  # the numbers are above 0, so that 0 never wins
            actions = ((1 - rng.random(mask.shape, dtype=np.float32)) * mask).argmax(axis=1)
            observations, rewards, terminations, truncations, infos = envs.step(actions)
            ended = terminations | truncations
            ends.update(infos["outcome"][ended].tolist())
            if turn % max(1, rounds // 20) == 0 or turn == rounds - 1:
                memory.append(resident_megabytes())
                if not ((observations >= space.low) & (observations <= space.high)).all():
                    raise RuntimeError(f"{task}: an observation is out of its bounds")
                if not np.isfinite(rewards).all():
                    raise RuntimeError(f"{task}: a reward is not finite")
    return {
        "steps": rounds * copies,
        "seconds": watch.seconds,
        "ends": dict(ends),
        "megabytes": memory,
        "growth": max(memory[len(memory) // 10 :]) - memory[len(memory) // 10],
    }


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    from safetest_gym.envs.tasks import NAMES

    report = Report("endurance")
    for name in NAMES:
        if wanted and name not in wanted:
            continue
        facts = runner.run("walk", task=name, steps=MILLIONS * 1_000_000)
        if facts is None:
            raise RuntimeError(f"{name} did not end within {runner.cap_seconds} s")
        report.facts[name] = facts
        ends = ", ".join(f"{end} {count:,}" for end, count in sorted(facts["ends"].items()))
        text = (
            f"{facts['steps'] / 1e6:.0f} million steps in {facts['seconds']:.0f} s CPU, "
            f"{facts['megabytes'][-1]:.0f} MB, +{facts['growth']:.1f} MB; {ends}"
        )
        report.add(name, text, ratio=ALLOWED_MEGABYTES / max(facts["growth"], 0.01), target=1)
    return report


if __name__ == "__main__":
    main("tests.benchmarks.endurance", {"walk": walk}, _plan)
