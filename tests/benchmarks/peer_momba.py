"""Momba's gym class on our models, which it reads once they are plain JANI."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

from tests.benchmarks.harness import Facts, stopwatch

__all__ = ["step_with_momba"]

Json = dict[str, Any]


def step_with_momba(*, task: str, parameters: Json, steps: int, repeats: int) -> Facts:
    """Step at random, asking for the mask after each step, as its users would."""
    import momba.gym
    from momba import jani

    from safetest_gym.envs.tasks import make_generator

    generator = make_generator(task, parameters)
    model = plain_jani(generator.model(), generator.properties()[0])
    gym: Any = momba.gym
    network = jani.load_model(json.dumps(model))
    instance = next(iter(network.instances))
    observations = gym.generic.Observations.OMNISCIENT
    env = gym.create_generic_env(network, instance, "reach", observations=observations)
    warnings.simplefilter("ignore")
    best = float("inf")
    for repeat in range(repeats):
        best = min(best, _walk(env, random.Random(repeat), steps))
    return {"rate": steps / best}


def _walk(env: Any, rng: random.Random, steps: int) -> float:
    """CPU seconds of ``steps`` steps with masks and resets, without choosing actions."""
    env.reset()
    mask = env.available_actions
    seconds = 0.0
    for _ in range(steps):
        action = rng.choice(mask.nonzero()[0].tolist())
        with stopwatch() as watch:
            _, _, done, _ = env.step(action)
            if done:
                env.reset()
            mask = env.available_actions
        seconds += watch.seconds
    return seconds


def plain_jani(model: Json, planning: Json) -> Json:
    """Our dialect's model with the planning property as a reach-avoid property."""
    converted: Json = json.loads(json.dumps(model))
    converted["type"] = "mdp"
    converted.pop("features", None)
    expression = planning["expression"]
    failing, goal = _bare(expression["reach"]), _bare(expression["objective"])
    until = {"op": "U", "left": {"op": "¬", "exp": failing}, "right": goal}
    converted["properties"] = [
        {
            "name": "reach",
            "expression": {
                "op": "filter",
                "fun": "values",
                "states": {"op": "initial"},
                "values": {"op": "Pmax", "exp": until},
            },
        }
    ]
    return converted


def _bare(condition: Any) -> Any:
    """The expression inside the dialect's wrappers."""
    while isinstance(condition, dict) and condition.get("op") in ("objective", "state-condition"):
        condition = condition["goal" if condition["op"] == "objective" else "exp"]
    return condition
