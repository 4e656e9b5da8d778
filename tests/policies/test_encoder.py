"""The encoder's features, and that a network with it is the same plain network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import ConfigError, PolicyError
from safetest_gym.policies import MlpPolicy, load_policy, policy_from_sb3, save_policy
from safetest_gym.task import Task

pytest.importorskip("sb3_contrib")

import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO

from safetest_gym.callbacks.grids import observed_grids
from safetest_gym.envs.options import open_task
from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import save_sb3_interface
from safetest_gym.policies.encoder import GridEncoder
from safetest_gym.policies.maskable_dqn import MaskableDQN
from safetest_gym.repair.sb3_model import changed_tensors

pytestmark = pytest.mark.usefixtures("one_thread")


def _features(grid: list[float], *values: float) -> Any:
    encoder = GridEncoder(spaces.Box(-9, 9, (1,)), [grid])
    return encoder(torch.tensor(values, dtype=torch.float32)[:, None]).numpy()


def test_every_grid_value_has_a_feature_of_its_own() -> None:
    assert _features([0, 1, 3], 0, 1, 3).tolist() == np.eye(3).tolist()


def test_between_two_values_their_features_share_one() -> None:
    assert _features([0, 1, 3], 2.5)[0] == pytest.approx([0, 0.25, 0.75])


def test_beyond_the_grid_its_ends_count() -> None:
    assert _features([0, 1, 3], -4, 7).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("grids", [[[]], [[1, 1]], [[1, 0]], [[float("nan")]], [[0], [1]]])
def test_bad_grids_are_refused(grids: list[list[float]]) -> None:
    with pytest.raises(ConfigError, match="grid"):
        GridEncoder(spaces.Box(-9, 9, (1,)), grids)


@pytest.fixture(scope="module")
def task() -> Task:
    return open_task(OneWayLine(packages=3, locations=5), {})[0]


def _model(task: Task, kind: Any = MaskablePPO, **arguments: Any) -> Any:
    env = SB3VecEnv(task, 4, observation="normalized", step_limit=60)
    network = {
        "net_arch": [16, 16],
        "activation_fn": torch.nn.ReLU,
        "features_extractor_class": GridEncoder,
        "features_extractor_kwargs": {"grids": observed_grids(env, {})},
    }
    return kind("MlpPolicy", env, policy_kwargs=network, seed=0, device="cpu", **arguments)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(MaskablePPO, {"n_steps": 32}), (MaskableDQN, {"learning_starts": 50})],
)
def test_a_model_with_encoder_becomes_a_plain_network_that_decides_alike(
    task: Task, kind: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    model = _model(task, kind, **options)
    model.learn(256)
    policy = policy_from_sb3(model)
    assert isinstance(policy, MlpPolicy)
    states = task.initial.sample(500, np.random.default_rng(0))
    masks = np.ones((len(states), task.num_actions), dtype=np.bool_)
    seen = policy.scalings[0](states)
    wanted, _ = model.predict(seen, deterministic=True, action_masks=masks)
    assert (policy.bind(task).actions(states, masks) == wanted).all()
    model.save(tmp_path / "model.zip")
    save_sb3_interface(model, tmp_path / "model.zip")
    loaded = load_policy(tmp_path / "model.zip", task)
    save_policy(loaded, tmp_path / "policy.nnet")
    for same in (loaded, load_policy(tmp_path / "policy.nnet", task)):
        assert (same.scores(states) == policy.scores(states)).all()  # type: ignore[union-attr]


def test_grids_are_all_values_of_small_integers_or_those_given(task: Task) -> None:
    env = SB3VecEnv(task, 1)
    name = task.variables[0].name
    grids = observed_grids(env, {name: [0, 2]})
    assert grids[0] == [0, 2]
    assert all(
        grid == list(range(int(variable.lower), int(variable.upper) + 1))  # type: ignore[arg-type]
        for grid, variable in zip(grids[1:], task.variables[1:], strict=True)
    )


def test_a_grid_of_an_unknown_variable_is_refused_with_a_guess(task: Task) -> None:
    with pytest.raises(ConfigError, match="did you mean 'truck_0'"):
        observed_grids(SB3VecEnv(task, 1), {"truck_1": [0, 1]})


def _moved(policy: MlpPolicy, which: int) -> MlpPolicy:
    """The policy with the biases of one layer changed."""
    layers = list(policy.layers)
    layers[which] = replace(layers[which], bias=layers[which].bias + np.float32(1))
    return replace(policy, layers=tuple(layers))


def test_a_repair_changes_the_last_layer_of_a_model_with_encoder_alone(task: Task) -> None:
    model = _model(task)
    before = policy_from_sb3(model)
    assert isinstance(before, MlpPolicy)
    tensors = model.policy.state_dict()
    changed = changed_tensors(tensors, before, _moved(before, -1))
    different = [name for name in tensors if not torch.equal(tensors[name], changed[name])]
    assert different == ["action_net.bias"]
    for which in (0, 1):
        with pytest.raises(PolicyError, match="encoder"):
            changed_tensors(tensors, before, _moved(before, which))
