from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from safetest_gym.envs.jani_env import JaniEnv
from tests.envs.walk import walk_model, walk_properties


def made() -> gym.Env[Any, Any]:
    env = JaniEnv(walk_model(), properties=walk_properties(), invalid_action="noop", step_limit=9)
    return Monitor(env, info_keywords=("cumulative_cost",))


class NoJumps:
    def mask(self, state: Any) -> Any:
        return np.array([True, True, False])


def run(vector: Any, steps: int) -> list[Any]:
    vector.seed(3)
    seen = [vector.reset().tolist()]
    for number in range(steps):
        observations, rewards, dones, _ = vector.step(np.array([number % 3, 1]))
        seen.append((observations.tolist(), rewards.tolist(), dones.tolist()))
    vector.close()
    return seen


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        pytest.param("forkserver", marks=pytest.mark.slow),
        pytest.param("spawn", marks=pytest.mark.slow),
    ],
)
def test_subprocesses_give_the_same_episodes(method: str) -> None:
    alone = run(DummyVecEnv([made, made]), 60)
    assert run(SubprocVecEnv([made, made], start_method=method), 60) == alone


def test_a_shield_reaches_subprocesses() -> None:
    vector = SubprocVecEnv([made, made], start_method="fork")
    vector.reset()
    vector.env_method("set_shield", NoJumps())
    assert not np.stack(vector.env_method("action_masks"))[:, 2].any()
    vector.close()


def test_monitor_collects_the_cost() -> None:
    vector = DummyVecEnv([made])
    vector.reset()
    found = []
    for _ in range(200):
        mask = vector.env_method("action_masks")[0]
        *_, infos = vector.step(np.flatnonzero(mask)[-1:])
        found += [info["episode"]["cumulative_cost"] for info in infos if "episode" in info]
    assert set(found) <= {0.0, 1.0}
    assert 1.0 in found


def test_gymnasium_s_own_vectors_work() -> None:
    arguments: dict[str, Any] = {
        "model": walk_model(),
        "properties": walk_properties(),
        "invalid_action": "noop",
    }
    both = [
        gym.make_vec("safetest/Jani-v0", 2, vectorization_mode=mode, **arguments)
        for mode in ("sync", "async")
    ]
    firsts = [vector.reset(seed=1)[0].tolist() for vector in both]
    for _ in range(20):
        steps = [vector.step(np.array([1, 1])) for vector in both]
        firsts = [observations.tolist() for observations, *_ in steps]
        assert firsts[0] == firsts[1]
    for vector in both:
        vector.close()
