"""The Gymnasium face: environments, rewards, pictures and bundled tasks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.envs.jani_env import JaniEnv
    from safetest_gym.envs.rewards import (
        ExpressionReward,
        GoalFailureReward,
        GoalReward,
        PotentialShaping,
        Reward,
        StepCost,
        StepReward,
        SumReward,
    )
    from safetest_gym.envs.sb3_vec_env import SB3VecEnv
    from safetest_gym.envs.shielding import Shield
    from safetest_gym.envs.vector_env import JaniVectorEnv

__all__ = [
    "ExpressionReward",
    "GoalFailureReward",
    "GoalReward",
    "JaniEnv",
    "JaniVectorEnv",
    "PotentialShaping",
    "Reward",
    "SB3VecEnv",
    "Shield",
    "StepCost",
    "StepReward",
    "SumReward",
]

_HOMES = {"JaniEnv": "jani_env", "JaniVectorEnv": "vector_env", "SB3VecEnv": "sb3_vec_env"}
_HOMES |= {"Shield": "shielding"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'rewards')}")
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
