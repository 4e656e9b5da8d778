from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from tests.envs.walk import LEFT, at, walk_model, walk_properties

ARGUMENTS: dict[str, Any] = {"properties": walk_properties(), "step_limit": 6}


def ours(num_envs: int = 4, **changes: Any) -> SB3VecEnv:
    return SB3VecEnv(walk_model(), num_envs, **(ARGUMENTS | changes))


def reference(num_envs: int = 4) -> DummyVecEnv:
    return DummyVecEnv([lambda: Monitor(JaniEnv(walk_model(), **ARGUMENTS))] * num_envs)


def test_it_behaves_like_a_dummy_vector_of_single_environments() -> None:
    mine: Any = ours()
    theirs: Any = reference()
    mine.seed(4)
    theirs.seed(4)
    assert mine.reset().tolist() == theirs.reset().tolist()
    ended = 0
    for _ in range(200):
        masks = get_action_masks(mine)
        assert masks.tolist() == get_action_masks(theirs).tolist()
        actions = masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)
        found, expected = mine.step(actions), theirs.step(actions)
        for first, second in zip(found[:3], expected[:3], strict=True):
            assert np.array_equal(first, second)
        for info, other in zip(found[3], expected[3], strict=True):
            assert info["TimeLimit.truncated"] == other["TimeLimit.truncated"]
            assert info["cost"] == other["cost"]
            if "terminal_observation" in other:
                ended += 1
                assert np.array_equal(info["terminal_observation"], other["terminal_observation"])
                assert info["outcome"] == other["outcome"]
                assert info["action_mask"].tolist() == other["action_mask"].tolist()
                assert info["episode"]["l"] == other["episode"]["l"]
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"])
            else:
                assert "terminal_observation" not in info
    assert ended > 50


def test_masking_is_found_by_sb3_contrib() -> None:
    assert is_masking_supported(ours())


def test_options_choose_the_start_once() -> None:
    env: Any = ours(2)
    env.reset()
    env.set_options(at(6))
    assert env.reset()[:, 0].tolist() == [6.0, 6.0]
    assert env.step(np.full(2, LEFT))[0][:, 0].tolist() == [5.0, 5.0]


class NoJumps:
    def mask(self, state: Any) -> Any:
        return np.array([True, True, False])


def test_single_copies_can_have_a_shield() -> None:
    env = ours(2)
    env.set_options(at(3))
    env.reset()
    shield = NoJumps()
    env.env_method("set_shield", shield, indices=[1])
    assert env.env_method("get_shield") == [None, shield]
    assert env.action_masks().tolist() == [[True, True, True], [True, True, False]]


def test_the_mask_of_the_last_state_is_the_shielded_one() -> None:
    env = ours(2, step_limit=1)
    env.set_options(at(4))
    env.reset()
    env.env_method("set_shield", NoJumps(), indices=[1])
    *_, infos = env.step(np.full(2, LEFT))
    masks = [info["action_mask"].tolist() for info in infos]
    assert masks == [[1, 1, 1], [1, 1, 0]]


def test_unknown_methods_and_attributes_are_attribute_errors() -> None:
    env = ours()
    with pytest.raises(AttributeError, match="no method 'fly'"):
        env.env_method("fly")
    assert not env.has_attr("wings")


def test_the_number_of_copies_may_be_a_whole_float() -> None:
    envs = ours(2.0)  # type: ignore[arg-type]  # as configuration files give it
    envs.seed(0)
    assert envs.reset().shape == (2, 2)


def test_it_counts_as_monitored() -> None:
    assert ours(2).env_is_wrapped(Monitor) == [True, True]


def test_wrappers_of_stable_baselines_apply() -> None:
    env: Any = VecNormalize(ours())
    env.reset()
    assert np.abs(env.step(np.full(4, 1))[0]).max() <= 10


def test_maskable_ppo_learns_to_reach_the_goal() -> None:
    env = ours(64, observation="normalized", step_limit=30)
    model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=512, seed=1, learning_rate=5e-3)
    model.learn(10_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer or ()]) > 0.5
