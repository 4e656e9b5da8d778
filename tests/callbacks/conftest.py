"""Learners on small tasks that every callback test may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sb3_contrib import QRDQN, MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from safetest_gym.envs import JaniEnv, SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import MaskableDQN

LINE = OneWayLine(packages=1, locations=5)
ROLLOUT: dict[str, Any] = {"n_steps": 16}
REPLAY: dict[str, Any] = {"learning_starts": 32, "buffer_size": 2000, "batch_size": 16}

ALGORITHMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PPO": (PPO, {**ROLLOUT, "n_epochs": 2, "batch_size": 16}),
    "A2C": (A2C, ROLLOUT),
    "MaskablePPO": (MaskablePPO, {**ROLLOUT, "n_epochs": 2, "batch_size": 16}),
    "DQN": (DQN, REPLAY),
    "QRDQN": (QRDQN, REPLAY),
    "MaskableDQN": (MaskableDQN, REPLAY),
}


def _single(options: dict[str, Any]) -> Callable[[], Any]:
    return lambda: Monitor(JaniEnv(LINE, **options))


def make_env(kind: str = "SB3VecEnv", num_envs: int = 2, **options: Any) -> VecEnv:
    """Environments of a small task; an inapplicable action ends the episode."""
    options = {"step_limit": 30, "invalid_action": "terminate", **options}
    if kind == "SB3VecEnv":
        return SB3VecEnv(LINE, num_envs, **options)
    makers = [_single(options)] * num_envs
    if kind == "SubprocVecEnv":
        return SubprocVecEnv(makers, start_method="fork")
    made: VecEnv = DummyVecEnv(makers)
    return VecNormalize(made) if kind == "VecNormalize" else made


def make_model(algorithm: str, env: VecEnv | None = None, **options: Any) -> BaseAlgorithm:
    """A small learner."""
    kind, usual = ALGORITHMS[algorithm]
    network = {"net_arch": [16]}
    made: BaseAlgorithm = kind(
        "MlpPolicy",
        make_env() if env is None else env,
        policy_kwargs=network,
        seed=0,
        device="cpu",
        **{**usual, **options},
    )
    return made


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Networks this small are faster so, and much faster where many tests run at once."""
    torch.set_num_threads(1)


@pytest.fixture
def plan() -> dict[str, Any]:
    """A small safety plan whose findings do not depend on time."""
    return {"runs": 64, "held_out": 20, "runs_per_start": 2, "share": None}
