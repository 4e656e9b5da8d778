"""Networks are read out of SB3 zips, and nothing in a zip is ever unpickled."""

from __future__ import annotations

import base64
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import load_policy, policy_from_sb3, save_sb3_interface
from safetest_gym.policies.sb3_zip import read_sb3_layers
from tests.oracles.masked_env import MaskedLine
from tests.oracles.policies import Names, interface, random_states

pytest.importorskip("sb3_contrib")

import sb3_contrib
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.torch_layers import FlattenExtractor

from safetest_gym.policies.maskable_dqn import MaskableDQN

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Names(("v0", "v1", "v2"), ("a0", "a1", "a2", "a3"))
RELU = {"net_arch": [8], "activation_fn": torch.nn.ReLU}


class OwnExtractor(FlattenExtractor):
    """A features extractor that the zip alone cannot tell."""


def _saved(folder: Path, model: Any) -> Path:
    model.save(folder / "model.zip")
    return folder / "model.zip"


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (sb3.PPO, {}),
        (sb3.A2C, RELU),
        (sb3_contrib.MaskablePPO, {"net_arch": []}),
        (sb3.DQN, {"net_arch": [8, 8]}),
        (sb3.DQN, {"activation_fn": torch.nn.Tanh}),
        (sb3_contrib.QRDQN, {"n_quantiles": 7}),
        (MaskableDQN, RELU),
    ],
)
def test_the_network_read_is_the_one_of_the_loaded_model(
    algorithm: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    model = algorithm("MlpPolicy", MaskedLine(), policy_kwargs=options, device="cpu")
    states = random_states(np.random.default_rng(0), 100, 3)
    wanted = policy_from_sb3(model, interface(3, 4)).scores(states)
    policy: Any = load_policy(_saved(tmp_path, model), TASK)
    assert (policy.scores(states) == wanted).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features_extractor_class": OwnExtractor}, "policy_kwargs features_extractor_class"),
        ({"activation_fn": torch.nn.GELU}, "GELU.* has no kernel"),
    ],
)
def test_custom_networks_are_refused_with_advice(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = sb3.PPO("MlpPolicy", MaskedLine(), policy_kwargs=options, device="cpu")
    with pytest.raises(PolicyError, match=f"{message}.*policy_from_sb3"):
        read_sb3_layers(_saved(tmp_path, model))


def test_recurrent_policies_are_refused(tmp_path: Path) -> None:
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", MaskedLine(), device="cpu")
    with pytest.raises(PolicyError, match="not a plain MlpPolicy"):
        read_sb3_layers(_saved(tmp_path, model))


def test_continuous_actions_are_refused(tmp_path: Path) -> None:
    model = sb3.PPO("MlpPolicy", gymnasium.make("Pendulum-v1"), device="cpu")
    with pytest.raises(PolicyError, match=r"action_space is .*Box.*, not Discrete"):
        read_sb3_layers(_saved(tmp_path, model))


class Trap:
    """Says so when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise AssertionError('unpickled')",)


def test_pickled_parts_are_not_loaded(tmp_path: Path) -> None:
    model = sb3.PPO("MlpPolicy", MaskedLine(), policy_kwargs=RELU, device="cpu")
    original, trapped = _saved(tmp_path, model), tmp_path / "trapped.zip"
    trap = base64.b64encode(pickle.dumps(Trap())).decode()
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(trapped, "w") as target:
        data = json.loads(source.read("data"))
        for entry in data.values():
            if isinstance(entry, dict) and ":serialized:" in entry:
                entry[":serialized:"] = trap
        target.writestr("data", json.dumps(data))
        target.writestr("policy.pth", source.read("policy.pth"))
    assert len(read_sb3_layers(trapped)) == 2


def test_a_file_that_is_no_sb3_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(PolicyError, match="is no Stable-Baselines3 zip"):
        read_sb3_layers(path)


@pytest.mark.parametrize("data", ["[]", "null", '{"observation_space": 5}', '{"policy_class": 1}'])
def test_a_zip_with_other_data_is_refused(data: str, tmp_path: Path) -> None:
    path, weights = tmp_path / "model.zip", io.BytesIO()
    torch.save({}, weights)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", data)
        archive.writestr("policy.pth", weights.getvalue())
    with pytest.raises(PolicyError):
        read_sb3_layers(path)


def test_a_zip_with_damaged_weights_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", b"PK damaged")
    with pytest.raises(PolicyError, match=r"model\.zip"):
        read_sb3_layers(path)


def test_the_file_beside_a_zip_says_how_inputs_are_scaled(tmp_path: Path) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    class WithTask(MaskedLine):
        """Says what our environments say."""

        task = TASK
        observed = TASK.names

    env = VecNormalize(DummyVecEnv([WithTask]))
    model = MaskableDQN("MlpPolicy", env, learning_starts=50, device="cpu").learn(100)
    path = _saved(tmp_path, model)
    save_sb3_interface(model, path)
    states = random_states(np.random.default_rng(0), 100, 3)
    policy: Any = load_policy(path, TASK)
    wanted: Any = policy_from_sb3(model)
    assert len(policy.scalings) == 2
    assert (policy.scores(states) == wanted.scores(states)).all()
