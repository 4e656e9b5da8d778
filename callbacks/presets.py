"""What to train each bundled task with: reasonable, not yet safe policies in minutes.

Found by short experiments; `docs/training.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from safetest_gym.callbacks.training import Algo
from safetest_gym.task import Task

__all__ = ["PRESETS", "Preset", "preset_for"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Defaults of a training run; see `TrainConfig` for the meaning of each."""

    algo: Algo = "maskable-ppo"
    steps: int = 200_000
    net: tuple[int, ...] = (64, 64)
    num_envs: int = 32
    env: Mapping[str, Any] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)


def _env(step_limit: int, shaping: float | None = None, **more: Any) -> dict[str, Any]:
    """Normalised observations, short episodes, and the potential times ``shaping``."""
    arguments: dict[str, Any] = {"observation": "normalized", "step_limit": step_limit, **more}
    if shaping is not None:
        arguments["reward"] = _shaped(shaping)
    return arguments


def _shaped(scale: float) -> list[dict[str, Any]]:
    return [{"kind": "goal_failure"}, {"kind": "potential_shaping", "scale": scale}]


PRESETS: dict[str, Preset] = {
    "OneWayLine": Preset(steps=400_000, env=_env(150, 0.01)),
}


def preset_for(task: Task, bundled: str | None, algo: Algo | None = None) -> Preset:
    """The preset of a bundled task, or one that should do for a model.

    With another kind of algorithm than the preset's, its learner's arguments are dropped.
    """
    preset = PRESETS.get(bundled or "") or _general(task)
    if algo is None or algo == preset.algo:
        return preset
    dqn = algo.endswith("dqn")
    if dqn == preset.algo.endswith("dqn"):
        return replace(preset, algo=algo)
    return replace(preset, algo=algo, learner={}, num_envs=8 if dqn else 32)


def _general(task: Task) -> Preset:
    """Scale observations and the goal's potential where the task has what that takes."""
    env: dict[str, Any] = {"step_limit": 200}
    if all(v.lower is not None and v.upper is not None for v in task.variables):
        env["observation"] = "normalized"
    potential = task.property.goal_potential
    if potential is not None:
        states = task.initial.sample(256, np.random.default_rng(0))
        values = task.evaluator([potential])(task.engine.pack(states))[:, 0]
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        env["reward"] = _shaped(0.1 / largest if largest else 0.01)
    return Preset(env=env)
