"""What callbacks change: trainings with and without them, at equal timesteps.

``python -m tests.benchmarks.callbacks_effect out.jsonl`` trains, one line of JSON per
training, and leaves out what is in the file already, so that it may be killed and run again;
then, or with ``--table`` alone, it prints the table of docs/callbacks.md: means over seeds of
the trained policy's %Unsafe and %Goal without any shield, of %Unsafe with the shield that the
training left behind, and of what it cost.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks import FeedbackCallback, SafetyTestCallback, ShieldCallback
from safetest_gym.callbacks.presets import preset_for
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.policies import evaluate, policy_from_sb3
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.task import Task


@dataclass(frozen=True, kw_only=True)
class Case:
    """A task and how long it is trained on, with the rewards of its preset."""

    generator: Any
    steps: int
    rollout: int


CASES = {
    "OneWayLine": Case(generator=OneWayLine(), steps=512, rollout=8),
    "TwoWayLine icy_park": Case(
        generator=TwoWayLine(packages=1, locations=5, variant="icy_park", icy=(2,)),
        steps=40_960,
        rollout=128,
    ),
    "FlappyBird": Case(generator=FlappyBird(width=40, height=20), steps=32_768, rollout=128),
}
COPIES = 32
TESTS = 20
"""Safety tests per training, at equal distances."""


@dataclass(frozen=True)
class Effect:
    """Of one training; rates in percent."""

    unsafe: float
    goal: float
    shielded_unsafe: float
    failing_episodes: float
    tests_share: float
    cpu_seconds: float


class _Failures(BaseCallback):
    """Counts episodes of training that fail."""

    count = 0

    def _on_step(self) -> bool:
        self.count += sum(info.get("outcome") == "failing" for info in self.locals["infos"])
        return True


KINDS: dict[str, Callable[[SafetyTestCallback], BaseCallback | None]] = {
    "plain": lambda _: None,
    "faults as masks": lambda tests: ShieldCallback(mode="faults", tests=tests),
    "the same, no lessons": lambda tests: ShieldCallback(mode="faults", tests=tests, lessons=0),
    "decider shield": lambda tests: ShieldCallback(mode="decider", tests=tests),
    "feedback": lambda tests: FeedbackCallback(tests=tests),
    "feedback and starts": lambda tests: FeedbackCallback(tests=tests, start_share=0.25),
    "penalties alone": lambda tests: FeedbackCallback(tests=tests, lessons=0),
}


def run(case: Case, kind: str, seed: int) -> Effect:
    """Train once and measure."""
    preset = preset_for(open_task(case.generator, {})[0], case.generator)
    env = SB3VecEnv(case.generator, COPIES, **preset.arguments(case.generator))
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=case.rollout,
        batch_size=min(512, case.rollout * COPIES),
        n_epochs=5,
        learning_rate=1e-3,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [64, 64], "activation_fn": torch.nn.ReLU},
        seed=seed,
        device="cpu",
    )
    failures = _Failures()
    tests = SafetyTestCallback(every_steps=case.steps // TESTS, plan={"seed": seed, "share": None})
    callback = KINDS[kind](tests)
    begun = time.process_time()
    model.learn(case.steps, [failures] if callback is None else [failures, tests, callback])
    seconds = time.process_time() - begun
    found = evaluate(policy_from_sb3(model), env.task, 500, 5)
    return Effect(
        unsafe=100 * found.unsafe_rate.value,
        goal=100 * found.goal_rate.value,
        shielded_unsafe=_shielded(model, env.task, callback),
        failing_episodes=failures.count,
        tests_share=100 * (tests.history[-1]["share"] if tests.history else 0.0),
        cpu_seconds=seconds,
    )


def _shielded(model: MaskablePPO, task: Task, callback: BaseCallback | None) -> float:
    """%Unsafe of what would be deployed, with the shield."""
    if not isinstance(callback, ShieldCallback):
        return float("nan")
    guarded = GuardedPolicy(policy_from_sb3(model), callback.shield)
    return 100 * evaluate(guarded, task, 500, 1).unsafe_rate.value


def _done(path: Path) -> dict[tuple[str, str, int], dict[str, float]]:
    """What is in the file; a line that a kill cut short does not count."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return {(row["task"], row["training"], row["seed"]): row for row in rows}


def train_all(path: Path, tasks: Sequence[str], kinds: Sequence[str], seeds: Sequence[int]) -> None:
    """Whatever is not in the file yet."""
    for seed in seeds:
        for name in tasks:
            for kind in kinds:
                if (name, kind, seed) in _done(path):
                    continue
                effect = run(CASES[name], kind, seed)
                row = {"task": name, "training": kind, "seed": seed, **asdict(effect)}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def table(path: Path) -> Iterator[str]:
    """Means over seeds of what is in the file."""
    names = [field.name for field in fields(Effect)]
    heads = [name.replace("_", " ") for name in names]
    yield f"| task | training | seeds | {' | '.join(heads)} |"
    yield "| --- | --- | ---: " + "| ---: " * len(names) + "|"
    done = _done(path)
    for task in CASES:
        for kind in KINDS:
            rows = [row for key, row in done.items() if key[:2] == (task, kind)]
            if not rows:
                continue
            means = [np.mean([row[name] for row in rows]) for name in names]
            cells = " | ".join("" if np.isnan(mean) else f"{mean:.1f}" for mean in means)
            yield f"| {task} | {kind} | {len(rows)} | {cells} |"


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, action="append", help="default 21, 22 and 23")
    parser.add_argument("--task", action="append", choices=CASES)
    parser.add_argument("--training", action="append", choices=KINDS)
    parser.add_argument("--table", action="store_true", help="only print the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.table:
        train_all(
            options.file,
            options.task or list(CASES),
            options.training or list(KINDS),
            options.seed or (21, 22, 23),
        )
    print("\n".join(table(options.file)))


if __name__ == "__main__":
    main()
