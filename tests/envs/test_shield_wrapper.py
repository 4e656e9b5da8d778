from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from safetest_gym.envs import JaniEnv
from safetest_gym.envs.shield_wrapper import ShieldWrapper
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import ActionError, ConfigError
from safetest_gym.repair.shields import DeciderShield, ShieldError

LINE = OneWayLine(packages=1, locations=5)


def test_in_mode_mask_forbidden_actions_leave_the_masks() -> None:
    inner = JaniEnv(LINE)
    shield = DeciderShield(inner.task)
    env = ShieldWrapper(gymnasium.wrappers.RecordEpisodeStatistics(inner), shield)
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert (info["action_mask"] == shield.allowed(info["state"][None])[0]).all()
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        _, _, terminated, truncated, info = env.step(action)
        assert info["outcome"] != "failing"
        if terminated or truncated:
            _, info = env.reset()


def test_in_mode_replace_any_action_may_be_asked_for_and_no_run_fails() -> None:
    inner = JaniEnv(LINE)
    env = ShieldWrapper(inner, DeciderShield(inner.task), mode="replace")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    replaced = 0
    for _ in range(200):
        action = rng.integers(inner.task.num_actions)
        _, _, terminated, truncated, info = env.step(action)
        assert info["action_replaced"] == (info["action_taken"] != action)
        replaced += info["action_replaced"]
        assert info["outcome"] != "failing"
        if terminated or truncated:
            env.reset()
    assert 0 < replaced < 200


@pytest.mark.parametrize("action", [-1, 99])
def test_an_action_that_does_not_exist_is_refused_not_replaced(action: int) -> None:
    inner = JaniEnv(LINE)
    env = ShieldWrapper(inner, DeciderShield(inner.task), mode="replace")
    env.reset(seed=0)
    with pytest.raises(ActionError):
        env.step(np.int64(action))


def test_replacing_does_not_touch_the_environments_random_state() -> None:
    def states(mode: Any) -> list[list[int]]:
        inner = JaniEnv(LINE)
        env = ShieldWrapper(inner, DeciderShield(inner.task), mode=mode)
        env.reset(seed=5)
        found = []
        for _ in range(50):
            mask = env.shield.allowed(inner.state[None])[0]
            _, _, terminated, truncated, info = env.step(np.int64(mask.argmax()))
            found.append(info["state"].tolist())
            if terminated or truncated:
                env.reset()
        return found

    assert states("mask") == states("replace")


def test_a_foreign_environment_another_task_and_an_unknown_mode_are_refused() -> None:
    inner = JaniEnv(LINE)
    shield = DeciderShield(inner.task)
    cart: Any = gymnasium.make("CartPole-v1")
    with pytest.raises(ConfigError, match="wrap a JaniEnv"):
        ShieldWrapper(cart, shield)
    with pytest.raises(ShieldError, match="make the shield from this task"):
        ShieldWrapper(JaniEnv(OneWayLine(packages=1, locations=6)), shield)
    mode: Any = "swap"
    with pytest.raises(ConfigError, match="'mask' or 'replace'"):
        ShieldWrapper(inner, shield, mode=mode)
