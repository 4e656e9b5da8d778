"""What callbacks need to know of a learner, and what they refuse about it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from safetest_gym.errors import ConfigError, PolicyError
from safetest_gym.policies import policy_from_sb3
from safetest_gym.policies.scaling import scaled_features
from safetest_gym.task import Task

__all__ = ["check_learner", "environment_of", "exact_states", "own_task", "require_masks"]


def environment_of(model: BaseAlgorithm) -> VecEnv:
    """The training environment, which must be made of ours."""
    env = model.get_env()
    if env is None:
        raise ConfigError("the model has no environment; give it one with set_env")
    task = env.get_attr("task", [0])[0] if env.has_attr("task") else None
    if not isinstance(task, Task):
        raise ConfigError(
            "the training environment is not a JaniEnv, so there is no model to test it on; make "
            'it with gym.make("safetest/Jani-v0", model=...), JaniEnv or SB3VecEnv'
        )
    return env


def own_task(model: BaseAlgorithm) -> Task:
    """A copy of the training environment's task that nobody else uses."""
    task: Task = copy.deepcopy(environment_of(model).get_attr("task", [0])[0])
    return task


def exact_states(env: VecEnv) -> NDArray[Any]:
    """The states that the copies of the environment are in, (num_envs, V)."""
    return np.array(env.get_attr("state"))


def check_learner(model: BaseAlgorithm) -> None:
    """Refuse learners whose decisions cannot be tested.

    Raises:
        ConfigError: its environment is not one of ours.
        PolicyError: it has a memory, stacks frames, or observes something else than its
            environment's state.
    """
    env = environment_of(model)
    policy = policy_from_sb3(model)
    observed: Any = getattr(model, "_last_obs", None)
    if observed is None:
        return
    states = exact_states(env)
    features = scaled_features(states[:, list(policy.interface.columns)], policy.scalings)
    if not np.allclose(features, observed, rtol=1e-3, atol=1e-3):
        raise PolicyError(
            "the learner's observations are not those of its JaniEnv: a wrapper changes them in a "
            "way that tests cannot repeat; leave the wrapper out, or use "
            'observation="normalized" or VecNormalize instead'
        )


def require_masks(model: BaseAlgorithm) -> None:
    """Refuse learners that would not look at masks."""
    from sb3_contrib import MaskablePPO

    from safetest_gym.policies import MaskableDQN

    if not isinstance(model, MaskablePPO | MaskableDQN):
        raise ConfigError(
            f"{type(model).__name__} does not use action masks, so a shield would change nothing; "
            "use MaskablePPO or MaskableDQN, FeedbackCallback, or put "
            'ShieldWrapper(env, shield, mode="replace") around its environments'
        )
