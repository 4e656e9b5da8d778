"""Learners and environments that callbacks cannot work with are refused, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gymnasium.wrappers import FrameStackObservation
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, EveryNTimesteps
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from safetest_gym.callbacks import (
    FeedbackCallback,
    RepairCallback,
    SafetyTestCallback,
    ShieldCallback,
)
from safetest_gym.envs import JaniEnv
from safetest_gym.errors import ConfigError, PolicyError
from tests.callbacks.conftest import LINE, make_env, make_model

PLAN = {"runs": 16, "held_out": 5, "share": None}
TESTS: dict[str, Any] = {"every_steps": 32, "plan": PLAN}

CALLBACKS: dict[str, Callable[[], BaseCallback]] = {
    "tests": lambda: SafetyTestCallback(**TESTS),
    "shield": lambda: ShieldCallback(tests=TESTS),
    "feedback": lambda: FeedbackCallback(tests=TESTS),
    "repair": lambda: RepairCallback(tests=TESTS),
}
every_callback = pytest.mark.parametrize("name", CALLBACKS)


def _stacking_env() -> DummyVecEnv:
    def make() -> Any:
        env: Any = JaniEnv(LINE, step_limit=30, invalid_action="terminate")
        return Monitor(FrameStackObservation(env, 2))

    return DummyVecEnv([make])


@every_callback
def test_an_environment_that_is_not_ours(name: str) -> None:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16)
    with pytest.raises(ConfigError, match=r"not a JaniEnv.*make it with"):
        model.learn(16, CALLBACKS[name]())


@every_callback
def test_frames_stacked_outside_the_environments(name: str) -> None:
    model = make_model("MaskablePPO", VecFrameStack(make_env(), 2))
    with pytest.raises(PolicyError, match="frame stack"):
        model.learn(16, CALLBACKS[name]())


@every_callback
def test_frames_stacked_inside_each_environment(name: str) -> None:
    model = MaskablePPO("MlpPolicy", _stacking_env(), n_steps=16, batch_size=16, device="cpu")
    with pytest.raises(PolicyError, match="frame stack"):
        model.learn(16, CALLBACKS[name]())


@every_callback
def test_a_recurrent_policy(name: str) -> None:
    model = RecurrentPPO("MlpLstmPolicy", make_env(), n_steps=16, batch_size=16, device="cpu")
    with pytest.raises(PolicyError, match="recurrent"):
        model.learn(16, CALLBACKS[name]())


@pytest.mark.parametrize("name", [name for name in CALLBACKS if name != "tests"])
def test_a_callback_that_is_only_called_now_and_then(name: str) -> None:
    model = make_model("MaskablePPO")
    with pytest.raises(ConfigError, match=r"every step.*not into EveryNTimesteps"):
        model.learn(64, EveryNTimesteps(32, CALLBACKS[name]()))
