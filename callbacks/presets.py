"""What to train each bundled task with: reasonable, not yet safe policies in minutes.

Found by short experiments; `docs/training.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from safetest_gym.callbacks.training import Algo
from safetest_gym.envs.tasks.follow_car import ENOUGH_STEPS, LEAD_SPEED
from safetest_gym.task import Task

__all__ = ["PRESETS", "Preset", "preset_for"]

Rewards = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Defaults of a training run; see `TrainConfig` for the meaning of each.

    Attributes:
        env: arguments of the training environment.
        rewards: what to train on, made for a bundled task's generator.
    """

    algo: Algo = "maskable-ppo"
    steps: int = 200_000
    net: tuple[int, ...] = (64, 64)
    num_envs: int = 32
    env: Mapping[str, Any] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)
    grids: Mapping[str, Sequence[float]] | None = None
    rewards: Callable[[Any], Rewards] | None = None

    def arguments(self, generator: object) -> dict[str, Any]:
        """All arguments of the training environment."""
        return {**self.env, **({"reward": self.rewards(generator)} if self.rewards else {})}


def _ends(goal: float = 1.0, failing: float = -1.0, step: float = 0.0) -> dict[str, Any]:
    return {"kind": "goal_failure", "goal": goal, "failing": failing, "step": step}


def _potential(scale: float) -> Rewards:
    """The ends of runs, and the property's goal-potential times ``scale``."""
    return [_ends(), {"kind": "potential_shaping", "scale": scale}]


def _carried(line: Any, scale: float, ends: dict[str, Any]) -> Rewards:
    """How far the packages have come in all, loaded ones half a place further."""
    places = [f"{i} * location_load_{i}" for i in range(line.locations)]
    way = " + ".join([*places, "truck_0 * truck_load_0", "0.5 * truck_load_0"])
    share = scale / (line.packages * (line.locations - 1))
    return [ends, {"kind": "expression", "expression": way, "difference": True, "scale": share}]


def _crossed(task: Any) -> Rewards:
    """How many steps are left, about, to bring all packages over the bridge.

    Too many packages on the bridge count as if they were still before it.
    """
    head = task.locations - 2
    lowest = str(head)
    for place in reversed(range(head)):
        lowest = f"({place} if location_load_{place} > 0 else {lowest})"
    at = f"min(truck_0, {head})"
    ways = [f"max({at}, {lowest}) - min({at}, {lowest}) + {head} - {lowest}"]
    # To pick up, drop before the bridge, and then as those there: pick up, over, drop, back.
    ways += [f"{6 if place < head else 4} * location_load_{place}" for place in range(head + 1)]
    over = f"truck_0 = {head + 1} ∧ truck_load_0 <= {task.bridge}"
    ways.append(f"(truck_load_0 + 1 if {over} else max(0, 5 * truck_load_0 - 2))")
    return [_ends(step=-0.002), _less(" + ".join(ways), 0.02)]


def _driven(follow: Any) -> Rewards:
    """How much of the way to the goal is behind."""
    far = ENOUGH_STEPS * LEAD_SPEED * follow.timestep
    return [_ends(), _less(f"max({far} - ego_position, 0)", 1 / far)]


def _less(expression: str, scale: float) -> dict[str, Any]:
    """``scale`` for every unit that the expression becomes less."""
    return {"kind": "expression", "expression": expression, "difference": True, "scale": -scale}


def _slid(puzzle: Any) -> Rewards:
    """How far the tiles are from home in all, along rows and columns."""
    ways = []
    for tile in range(1, puzzle.width * puzzle.height):
        row, column = divmod(tile - 1, puzzle.width)
        across, down = f"tile_{tile} % {puzzle.width}", f"floor(tile_{tile} / {puzzle.width})"
        for place, home in ((across, column), (down, row)):
            ways.append(f"max({place}, {home}) - min({place}, {home})")
    return [_ends(), _less(" + ".join(ways), 0.05)]


def _env(step_limit: int, **more: Any) -> dict[str, Any]:
    return {"observation": "normalized", "step_limit": step_limit, **more}


PRESETS: dict[str, Preset] = {
    "Beluga": Preset(steps=400_000, env=_env(150)),
    "Blocksworld": Preset(steps=400_000, env=_env(100), rewards=lambda _: _potential(0.02)),
    "BouncingBall": Preset(steps=300_000, env=_env(200)),
    "CartPole": Preset(
        steps=400_000,
        env=_env(1000),
        learner={
            "gamma": 0.998,
            "ent_coef": 0.0,
            "n_steps": 256,
            "batch_size": 1024,
            "learning_rate": 7e-4,
        },
    ),
    "FlappyBird": Preset(steps=200_000, env=_env(100)),
    "FlightDiversion": Preset(steps=200_000, env=_env(100)),
    "FollowCar": Preset(
        steps=200_000,
        env=_env(2000),
        learner={"gamma": 0.995, "n_steps": 256, "batch_size": 1024},
        grids={"ego_velocity": [0, 8, 16, 20, *range(22, 34), 36, 44, 200]},
        rewards=_driven,
    ),
    "InvertedPendulum": Preset(steps=300_000, env=_env(200)),
    "NPuzzle": Preset(
        steps=2_000_000,
        net=(128, 128),
        num_envs=128,
        env=_env(150),
        learner={
            "gamma": 0.98,
            "ent_coef": 0.003,
            "n_steps": 64,
            "batch_size": 1024,
            "learning_rate": 1.5e-3,
        },
        grids={},
        rewards=_slid,
    ),
    "OneWayLine": Preset(steps=400_000, env=_env(150), rewards=lambda _: _potential(0.01)),
    "Rovers": Preset(steps=400_000, env=_env(150), rewards=lambda _: _potential(0.02)),
    "Transport": Preset(steps=600_000, env=_env(300), grids={}, rewards=_crossed),
    "TwoWayLine": Preset(
        steps=300_000,
        env=_env(200),
        rewards=lambda task: _carried(task, 3, _ends(step=-0.002)),
    ),
}
"""By the name of the generator."""


def preset_for(task: Task, generator: object = None, algo: Algo | None = None) -> Preset:
    """The preset of a bundled task, or one that should do for a model.

    With another kind of algorithm than the preset's, its learner's arguments are dropped.
    """
    preset = PRESETS.get(type(generator).__name__) or _general(task)
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
        env["reward"] = _potential(0.1 / largest if largest else 0.01)
    return Preset(env=env)
