from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env as check_gymnasium
from stable_baselines3.common.env_checker import check_env as check_sb3

from safetest_gym.envs.registration import task_id
from safetest_gym.envs.tasks import TASKS

pytestmark = pytest.mark.filterwarnings("error")


def made(name: str, **arguments: Any) -> gym.Env[Any, Any]:
    # The checkers try actions without asking for the mask.
    return gym.make(task_id(name), invalid_action="noop", **arguments)


@pytest.mark.parametrize("name", TASKS)
def test_gymnasium_finds_nothing_to_complain_about(name: str) -> None:
    check_gymnasium(made(name).unwrapped)


@pytest.mark.parametrize("name", TASKS)
def test_stable_baselines_finds_nothing_to_complain_about(name: str) -> None:
    with warnings.catch_warnings():
        # It recommends scaled observations for every Box that is none; that is our choice.
        warnings.filterwarnings("ignore", message=".*normalize.*")
        check_sb3(made(name))


@pytest.mark.parametrize("name", TASKS)
def test_normalized_observations_pass_too(name: str) -> None:
    check_sb3(made(name, observation="normalized"))
