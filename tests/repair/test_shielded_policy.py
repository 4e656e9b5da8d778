from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sb3_contrib import QRDQN, MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from safetest_gym.envs import JaniEnv, SB3VecEnv
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import PolicyError
from safetest_gym.policies import MaskableDQN, evaluate, policy_from_sb3
from safetest_gym.repair.learned_shield import walked_states
from safetest_gym.repair.shielded_policy import GuardedPolicy, ShieldedPolicy
from safetest_gym.repair.shields import DeciderShield, ShieldError
from safetest_gym.task import Task

LINE = OneWayLine(packages=1, locations=5)


def _env(**options: Any) -> DummyVecEnv:
    return DummyVecEnv([lambda: Monitor(JaniEnv(LINE, step_limit=40, **options))])


@pytest.mark.parametrize("algorithm", [PPO, A2C, DQN, QRDQN, MaskablePPO, MaskableDQN])
@pytest.mark.parametrize("observation", ["float32", "normalized"])
def test_every_choice_is_the_best_permitted_one(algorithm: Any, observation: str) -> None:
    env = _env(observation=observation)
    model = algorithm("MlpPolicy", env, seed=3, device="cpu")
    task: Task = env.get_attr("task")[0]
    shield = DeciderShield(task)
    states = walked_states(task, 100)
    policy = policy_from_sb3(model)
    view = env.get_attr("_view")[0]
    observations = ((states - view.offset) * view.scale).astype(np.float32)
    shielded = ShieldedPolicy(model, shield)
    assert (shielded.states(observations) == states).all()
    chosen, _ = shielded.predict(observations)
    assert (chosen == policy.actions(states, shield.allowed(states))).all()
    assert shielded.predict(observations[0])[0] == chosen[0]


def test_evaluate_policy_accepts_it_and_no_episode_fails() -> None:
    env = _env(observation="normalized")
    model = PPO("MlpPolicy", env, seed=0, device="cpu")
    outcomes: list[str] = []

    def note(found: dict[str, Any], _: dict[str, Any]) -> None:
        if found["done"]:
            outcomes.append(found["info"]["outcome"])

    shielded: Any = ShieldedPolicy(model, DeciderShield(env.get_attr("task")[0]))
    evaluate_policy(shielded, env, n_eval_episodes=20, callback=note)
    assert len(outcomes) == 20
    assert "failing" not in outcomes


def test_it_reads_states_back_through_vec_normalize() -> None:
    env = VecNormalize(_env(invalid_action="noop"), clip_obs=100.0)
    model = PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu").learn(128)
    shielded = ShieldedPolicy(model, DeciderShield(env.get_attr("task")[0]))
    env.training = False
    observations = env.reset()
    assert (shielded.states(np.asarray(observations)) == env.get_attr("state")[0]).all()


def test_hidden_variables_are_refused_with_what_to_do_instead() -> None:
    env = _env(observed=["truck_0"])
    model = PPO("MlpPolicy", env, device="cpu")
    with pytest.raises(PolicyError, match="observations hide"):
        ShieldedPolicy(model, DeciderShield(env.get_attr("task")[0]))


def test_a_shield_of_another_model_with_the_same_names_is_refused() -> None:
    twin = open_task(LINE, {"failure": "truck_0 == 0"})[0]
    with pytest.raises(ShieldError, match="make the shield from this task"):
        ShieldedPolicy(PPO("MlpPolicy", _env(), device="cpu"), DeciderShield(twin))


def test_an_observation_that_shows_no_state_is_refused() -> None:
    env = _env()
    shielded = ShieldedPolicy(
        PPO("MlpPolicy", env, device="cpu"), DeciderShield(env.get_attr("task")[0])
    )
    observation = np.asarray(env.reset()) + np.float32(0.4)
    with pytest.raises(PolicyError, match="no state looks like"):
        shielded.predict(observation)


def test_a_guarded_policy_is_of_one_task() -> None:
    env = SB3VecEnv(LINE, num_envs=1)
    policy = policy_from_sb3(MaskablePPO("MlpPolicy", env, seed=0, device="cpu"))
    twin = open_task(LINE, {"failure": "truck_0 == 0"})[0]
    with pytest.raises(ShieldError, match="was made for"):
        evaluate(GuardedPolicy(policy, DeciderShield(env.task)), twin)


def test_a_guarded_policy_is_safe_from_every_start_that_is() -> None:
    env = SB3VecEnv(LINE, num_envs=1)
    model = MaskablePPO("MlpPolicy", env, seed=0, device="cpu")
    policy = policy_from_sb3(model)
    guarded = GuardedPolicy(policy, DeciderShield(env.task))
    assert evaluate(policy, env.task, runs_per_start=2).unsafe_rate.value > 0
    assert evaluate(guarded, env.task, runs_per_start=2).unsafe_rate.value == 0
