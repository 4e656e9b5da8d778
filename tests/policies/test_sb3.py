"""Stable-Baselines3 models and their policies here choose the same actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies import MlpPolicy, SB3Policy, Scaling, policy_from_sb3
from tests.oracles.masked_env import MaskedLine
from tests.oracles.policies import interface, random_masks

pytest.importorskip("sb3_contrib")

import sb3_contrib
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from safetest_gym.policies.maskable_dqn import MaskableDQN

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = interface(3, 4)
RELU = {"net_arch": [32, 16], "activation_fn": torch.nn.ReLU}
SEPARATE = {"net_arch": {"pi": [8], "vf": [16]}, "share_features_extractor": False}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (sb3.PPO, {}),
    (sb3.PPO, RELU),
    (sb3.PPO, SEPARATE),
    (sb3.A2C, {}),
    (sb3_contrib.MaskablePPO, {"net_arch": []}),
    (sb3.DQN, RELU),
    (sb3_contrib.QRDQN, {"net_arch": [32], "n_quantiles": 20}),
    (MaskableDQN, {"net_arch": [64, 64]}),
]


def _states(count: int = 20_000) -> NDArray[np.int64]:
    return np.random.default_rng(4).integers(0, 200, (count, 3))


def _scores(model: Any, states: NDArray[Any]) -> NDArray[np.float32]:
    """What the model itself compares, straight from its torch modules."""
    observations = torch.as_tensor(np.asarray(states, dtype=np.float32))
    with torch.no_grad():
        if hasattr(model, "q_net"):
            values = model.q_net(observations)
        elif hasattr(model, "quantile_net"):
            values = model.quantile_net(observations).mean(dim=1)
        else:
            values = model.policy.get_distribution(observations).distribution.logits
    return np.asarray(values.numpy())


@pytest.mark.parametrize(("algorithm", "options"), KINDS)
def test_the_action_is_predict_s_on_every_state_but_for_ties(
    algorithm: Any, options: dict[str, Any]
) -> None:
    model = algorithm("MlpPolicy", MaskedLine(), policy_kwargs=options, seed=1, device="cpu")
    policy = policy_from_sb3(model, NAMES)
    assert isinstance(policy, MlpPolicy)
    states = _states()
    predicted, _ = model.predict(states.astype(np.float32), deterministic=True)
    chosen = policy.actions(states, np.ones((len(states), 4), dtype=bool))
    two_best = np.sort(_scores(model, states), axis=1)[:, -2:]
    tie = two_best[:, 1] - two_best[:, 0] <= 2e-6 * np.abs(two_best).max(axis=1)
    assert tie.sum() < 10
    assert (chosen == predicted)[~tie].all()


@pytest.mark.parametrize("algorithm", [sb3_contrib.MaskablePPO, MaskableDQN])
def test_the_masked_action_is_the_masked_predict_s(algorithm: Any) -> None:
    model = algorithm("MlpPolicy", MaskedLine(), seed=2, device="cpu")
    states = _states(5000)
    masks = random_masks(np.random.default_rng(5), len(states), 4)
    predicted, _ = model.predict(states.astype(np.float32), deterministic=True, action_masks=masks)
    chosen = policy_from_sb3(model, NAMES).actions(states, masks)
    assert (chosen == predicted).mean() > 0.9995


def test_vec_normalize_statistics_are_part_of_the_policy_and_frozen() -> None:
    env = VecNormalize(DummyVecEnv([MaskedLine]), clip_obs=2.0)
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=64, seed=3, device="cpu").learn(256)
    policy = policy_from_sb3(model, NAMES)
    states = _states(2000) % 12
    normalised: Any = env.normalize_obs(states.astype(np.float32))
    assert np.abs(normalised).max() == 2
    predicted, _ = model.predict(np.asarray(normalised), deterministic=True)
    masks = np.ones((2000, 4), dtype=bool)
    assert (policy.actions(states, masks) == predicted).all()
    before = policy.scores(states)
    model.learn(256)
    assert (policy.scores(states) == before).all()


def test_the_environment_s_own_scaling_comes_before_vec_normalize() -> None:
    model = sb3.DQN("MlpPolicy", MaskedLine(), seed=3, device="cpu")
    unit = Scaling.to_unit([0, 0, 0], [8, 2, 1])
    states = _states(50) % 3
    wanted = policy_from_sb3(model, NAMES).scores(unit(states))
    assert (policy_from_sb3(model, NAMES, scalings=[unit]).scores(states) == wanted).all()


def test_another_activation_runs_through_torch_and_says_why() -> None:
    options = {"activation_fn": torch.nn.GELU}
    model = sb3.PPO("MlpPolicy", MaskedLine(), policy_kwargs=options, device="cpu")
    policy = policy_from_sb3(model, NAMES)
    assert isinstance(policy, SB3Policy)
    assert "GELU" in policy.reason
    assert policy.native() is None
    states = _states(1000)
    predicted, _ = model.predict(states.astype(np.float32), deterministic=True)
    assert (policy.actions(states, np.ones((1000, 4), dtype=bool)) == predicted).all()


def test_a_model_without_a_task_needs_an_interface() -> None:
    model = sb3.PPO("MlpPolicy", MaskedLine(), device="cpu")
    with pytest.raises(PolicyError, match="pass an interface"):
        policy_from_sb3(model)


def test_recurrent_policies_are_refused() -> None:
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", MaskedLine(), device="cpu")
    with pytest.raises(PolicyError, match="recurrent"):
        policy_from_sb3(model, NAMES)


def test_frame_stacks_are_refused() -> None:
    env = VecFrameStack(DummyVecEnv([MaskedLine]), 2)
    model = sb3.PPO("MlpPolicy", env, device="cpu")
    with pytest.raises(PolicyError, match="frame stack"):
        policy_from_sb3(model, NAMES)


def test_continuous_actions_are_refused() -> None:
    env = gymnasium.make("Pendulum-v1")
    model = sb3.PPO("MlpPolicy", env, device="cpu")
    with pytest.raises(PolicyError, match="Discrete"):
        policy_from_sb3(model, interface(3, 1))


def test_another_number_of_observations_is_refused_with_the_variables() -> None:
    model = sb3.PPO("MlpPolicy", MaskedLine(), device="cpu")
    with pytest.raises(PolicyError, match="observes 3 numbers, the interface has 2 variables"):
        policy_from_sb3(model, interface(2, 4))
