"""What callbacks change: trainings with and without them, at equal timesteps.

Prints the table of docs/callbacks.md, one line per task and kind of training: means over
seeds of the trained policy's %Unsafe and %Goal without any shield, of %Unsafe with the
shield that the training left behind, and of what it cost. Run it from the project root:
``python -m tests.benchmarks.callbacks_effect --steps 12000 --seeds 3``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks import FeedbackCallback, SafetyTestCallback, ShieldCallback
from safetest_gym.envs import GoalFailureReward, PotentialShaping, Reward, SB3VecEnv
from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.policies import evaluate, policy_from_sb3
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.task import Task

TASKS: dict[str, Any] = {
    "OneWayLine": OneWayLine(packages=2, locations=6),
    "TwoWayLine icy_park": TwoWayLine(packages=2, locations=5, variant="icy_park"),
    "FlappyBird": FlappyBird(width=10, height=8),
}
KINDS = ("plain", "faults as masks", "the same, no lessons", "decider shield", "penalties")
GAMMA = 0.99


@dataclass(frozen=True)
class Effect:
    """Of one training; rates in percent."""

    unsafe: float
    goal: float
    shielded_unsafe: float
    failing_episodes: float
    tests_share: float
    seconds: float


class _Failures(BaseCallback):
    """Counts episodes of training that fail."""

    count = 0

    def _on_step(self) -> bool:
        self.count += sum(info.get("outcome") == "failing" for info in self.locals["infos"])
        return True


def run(generator: Any, kind: str, seed: int, steps: int) -> Effect:
    """Train once and measure."""
    env = SB3VecEnv(
        generator, 16, reward=_reward(generator), observation="normalized", step_limit=100
    )
    model = MaskablePPO("MlpPolicy", env, n_steps=64, gamma=GAMMA, seed=seed, device="cpu")
    failures = _Failures()
    tests = SafetyTestCallback(every_steps=1024, plan={"seed": seed})
    callback = _callback(kind, tests)
    begun = time.perf_counter()
    model.learn(steps, [failures] if callback is None else [failures, tests, callback])
    seconds = time.perf_counter() - begun
    found = evaluate(policy_from_sb3(model), env.task, 500, 5)
    share = tests.history[-1]["share"] if tests.history else 0.0
    return Effect(
        unsafe=100 * found.unsafe_rate.value,
        goal=100 * found.goal_rate.value,
        shielded_unsafe=_shielded(model, env.task, callback),
        failing_episodes=failures.count,
        tests_share=100 * share,
        seconds=seconds,
    )


def _reward(generator: Any) -> list[Reward]:
    """Reaching the goal and failing, with shaping where the task has a potential."""
    ends: list[Reward] = [GoalFailureReward(goal=10, failing=-10)]
    if isinstance(generator, FlappyBird):
        return ends
    return [*ends, PotentialShaping(gamma=GAMMA, scale=0.1)]


def _callback(kind: str, tests: SafetyTestCallback) -> BaseCallback | None:
    makers: dict[str, Callable[[], BaseCallback | None]] = {
        "plain": lambda: None,
        "faults as masks": lambda: ShieldCallback(mode="faults", tests=tests),
        "the same, no lessons": lambda: ShieldCallback(mode="faults", tests=tests, lessons=0),
        "decider shield": lambda: ShieldCallback(mode="decider", tests=tests),
        "penalties": lambda: FeedbackCallback(penalty=5.0, tests=tests),
    }
    return makers[kind]()


def _shielded(model: MaskablePPO, task: Task, callback: BaseCallback | None) -> float:
    """%Unsafe of what would be deployed, with the shield."""
    if not isinstance(callback, ShieldCallback):
        return float("nan")
    guarded = GuardedPolicy(policy_from_sb3(model), callback.shield)
    return 100 * evaluate(guarded, task, 500, 1).unsafe_rate.value


def table(tasks: Sequence[str], steps: int, seeds: int) -> Iterator[str]:
    """Lines of the table, as they are ready."""
    names = [field.name.replace("_", " ") for field in fields(Effect)]
    yield f"| task | training | {' | '.join(names)} |"
    yield "| --- | --- " + "| ---: " * len(names) + "|"
    for name in tasks:
        for kind in KINDS:
            effects = [run(TASKS[name], kind, seed, steps) for seed in range(seeds)]
            means = [np.mean([getattr(e, field.name) for e in effects]) for field in fields(Effect)]
            cells = " | ".join("" if np.isnan(mean) else f"{mean:.1f}" for mean in means)
            yield f"| {name} | {kind} | {cells} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--task", action="append", choices=TASKS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for line in table(options.task or list(TASKS), options.steps, options.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
