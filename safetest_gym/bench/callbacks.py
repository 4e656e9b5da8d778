"""What callbacks change: trainings with and without them, at equal timesteps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import (
    Cell,
    Experiment,
    Facts,
    Findings,
    Row,
    Setting,
    Table,
    mean_or_none,
)
from safetest_gym.bench.figures import BarFigure
from safetest_gym.bench.policies import open_bundled

if TYPE_CHECKING:
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback

    from safetest_gym.callbacks import SafetyTestCallback
    from safetest_gym.task import Task

__all__ = ["EXPERIMENT", "TASKS", "TRAININGS", "cells_of"]

TASKS: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "OneWayLine": ("OneWayLine", {}, 512, 8),
    "TwoWayLine icy_park": (
        "TwoWayLine",
        {"packages": 1, "locations": 5, "variant": "icy_park", "icy": [2]},
        40_960,
        128,
    ),
    "FlappyBird": ("FlappyBird", {"width": 40, "height": 20}, 32_768, 128),
    "Beluga": ("Beluga", {"jigs": 3, "racks": 2}, 98_304, 128),
}
"""Generator, its parameters, timesteps and steps of a rollout per copy."""

TRAININGS = (
    "plain",
    "faults as masks",
    "the same, no lessons",
    "decider shield",
    "feedback",
    "feedback and starts",
    "penalties alone",
)
_COPIES = 32
_TESTS = 20
"""Safety tests per training, at equal distances."""


def _callback(training: str, tests: SafetyTestCallback) -> BaseCallback | None:
    from safetest_gym.callbacks import FeedbackCallback, ShieldCallback

    makers: dict[str, Callable[[], BaseCallback | None]] = {
        "plain": lambda: None,
        "faults as masks": lambda: ShieldCallback(mode="faults", tests=tests),
        "the same, no lessons": lambda: ShieldCallback(mode="faults", tests=tests, lessons=0),
        "decider shield": lambda: ShieldCallback(mode="decider", tests=tests),
        "feedback": lambda: FeedbackCallback(tests=tests),
        "feedback and starts": lambda: FeedbackCallback(tests=tests, start_share=0.25),
        "penalties alone": lambda: FeedbackCallback(tests=tests, lessons=0),
    }
    return makers[training]()


def _plan(setting: Setting) -> list[Cell]:
    seeds = range(setting.seed, setting.seed + (1 if setting.quick else 5))
    return cells_of(tuple(TASKS), TRAININGS, seeds)


def cells_of(tasks: Sequence[str], trainings: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """These trainings of these tasks."""
    return [
        {"task": task, "training": training, "seed": seed, "steps": TASKS[task][2]}
        for seed in seeds
        for task in tasks
        for training in trainings
    ]


def _measure(cell: Cell, folder: Path) -> Facts:
    from stable_baselines3.common.callbacks import BaseCallback

    from safetest_gym.callbacks import SafetyTestCallback
    from safetest_gym.policies import evaluate, policy_from_sb3

    class Failures(BaseCallback):
        """Counts episodes of training that fail."""

        count = 0

        def _on_step(self) -> bool:
            self.count += sum(info.get("outcome") == "failing" for info in self.locals["infos"])
            return True

    model, task = _new_model(cell)
    steps = cell["steps"]
    failures = Failures()
    plan = {"seed": cell["seed"], "share": None}
    tests = SafetyTestCallback(every_steps=steps // _TESTS, plan=plan)
    callback = _callback(cell["training"], tests)
    begun = time.process_time()
    model.learn(steps, [failures] if callback is None else [failures, tests, callback])
    seconds = time.process_time() - begun
    found = evaluate(policy_from_sb3(model), task, 500, 5)
    return {
        "unsafe": 100 * found.unsafe_rate.value,
        "goal": 100 * found.goal_rate.value,
        "shielded_unsafe": _shielded(model, task, callback),
        "failing_episodes": failures.count,
        "cpu_seconds": round(seconds, 2),
    }


def _new_model(cell: Cell) -> tuple[MaskablePPO, Task]:
    import torch
    from sb3_contrib import MaskablePPO

    from safetest_gym.callbacks.presets import preset_for
    from safetest_gym.envs import SB3VecEnv

    torch.set_num_threads(1)  # small networks are slower with more
    name, parameters, _, rollout = TASKS[cell["task"]]
    task, generator, _ = open_bundled(name, parameters)
    preset = preset_for(task, generator)
    env = SB3VecEnv(generator, _COPIES, **preset.arguments(generator))
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=rollout,
        batch_size=min(512, rollout * _COPIES),
        n_epochs=5,
        learning_rate=1e-3,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [64, 64], "activation_fn": torch.nn.ReLU},
        seed=cell["seed"],
        device="cpu",
    )
    return model, env.task


def _shielded(model: MaskablePPO, task: Task, callback: BaseCallback | None) -> float | None:
    """%Unsafe of what would be deployed, with the shield."""
    from safetest_gym.callbacks import ShieldCallback
    from safetest_gym.policies import evaluate, policy_from_sb3
    from safetest_gym.repair.shielded_policy import GuardedPolicy

    if not isinstance(callback, ShieldCallback):
        return None
    guarded = GuardedPolicy(policy_from_sb3(model), callback.shield)
    return 100 * evaluate(guarded, task, 500, 1).unsafe_rate.value


_COLUMNS = {
    "unsafe": "%Unsafe",
    "goal": "%Goal",
    "shielded_unsafe": "%Unsafe, shielded",
    "failing_episodes": "failing episodes",
    "cpu_seconds": "CPU s",
}


def _present(rows: Sequence[Row]) -> Findings:
    names = list(dict.fromkeys(row.cell["task"] for row in rows))

    def mean(task: str, training: str, key: str) -> float | None:
        found = [
            row.facts[key]
            for row in rows
            if row.facts and (row.cell["task"], row.cell["training"]) == (task, training)
        ]
        return mean_or_none([value for value in found if value is not None])

    lines = []
    for name in names:
        for training in TRAININGS:
            chosen = [r for r in rows if (r.cell["task"], r.cell["training"]) == (name, training)]
            if chosen:
                means = [mean(name, training, key) for key in _COLUMNS]
                cells = ["" if value is None else f"{value:,.1f}" for value in means]
                lines.append([f"{name}, {training}", str(len(chosen)), *cells])
    table = Table("Means over seeds", ["training", "seeds", *_COLUMNS.values()], lines)
    seen = {row.cell["training"] for row in rows}
    ways = [way for way in TRAININGS if way in seen]
    series = {way: [mean(name, way, "unsafe") for name in names] for way in ways}
    figure = BarFigure(
        title="%Unsafe without any shield", y_name="percent", groups=names, series=series
    )
    notes = [
        f"{name}: {parameters or 'default parameters'}, {steps:,} timesteps"
        for task in names
        for name, parameters, steps, _ in [TASKS[task]]
    ]
    notes.append(f"{_TESTS} safety tests per training, whatever they cost; plain: none")
    return Findings(tables=[table], figures={"unsafe": figure}, notes=notes)


EXPERIMENT = Experiment(name="callbacks", plan=_plan, measure=_measure, present=_present)
