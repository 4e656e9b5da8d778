"""Bundled tasks by name, and policies for them from short trainings that a folder keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safetest_gym.envs.options import Generator
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["open_bundled", "trained"]


def open_bundled(name: str, parameters: Mapping[str, Any]) -> tuple[Task, Generator, int]:
    """A bundled task, its generator, and the step limit of its episodes."""
    from safetest_gym.envs.bundled import split_arguments
    from safetest_gym.envs.options import open_task

    generator, arguments = split_arguments(name, dict(parameters))
    task, options = open_task(generator, arguments)
    return task, generator, options.step_limit or 1000


def trained(
    name: str, parameters: Mapping[str, Any], plan: tuple[int, int], folder: Path
) -> Policy:
    """A policy trained with the task's preset.

    Args:
        plan: timesteps and seed.
        folder: keeps the policy, and the training if it is interrupted, under ``policies``.
    """
    import torch

    from safetest_gym.callbacks.presets import preset_for
    from safetest_gym.callbacks.training import TrainConfig, train
    from safetest_gym.policies import load_policy

    torch.set_num_threads(1)  # small networks are slower with more
    steps, seed = plan
    task, generator, step_limit = open_bundled(name, parameters)
    preset = preset_for(task, generator)
    config = TrainConfig(
        algo=preset.algo,
        steps=steps,
        net=preset.net,
        seed=seed,
        num_envs=preset.num_envs,
        every=steps,
        env=preset.arguments(generator),
        learner=preset.learner,
        grids=preset.grids,
        starts=50,
        runs=2,
        step_limit=min(step_limit, 200),
    )
    known = json.dumps([name, dict(parameters), steps, seed], sort_keys=True)
    mark = hashlib.sha256(known.encode()).hexdigest()[:8]
    out = folder / "policies" / f"{name}-{mark}"
    train(task, config, out)
    return load_policy(out / "model.zip", task)
