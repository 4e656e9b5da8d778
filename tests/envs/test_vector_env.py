from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.rewards import GoalFailureReward, PotentialShaping
from safetest_gym.envs.vector_env import JaniVectorEnv
from safetest_gym.errors import ActionError, ConfigError, StateError
from tests.envs.walk import DEAD_END, LEFT, RIGHT, at, walk_model, walk_properties

ARGUMENTS: dict[str, Any] = {
    "properties": walk_properties(),
    "reward": [GoalFailureReward(), PotentialShaping(gamma=0.9)],
    "step_limit": 6,
}


def vector(num_envs: int = 3, **changes: Any) -> JaniVectorEnv:
    return JaniVectorEnv(walk_model(), num_envs, **(ARGUMENTS | changes))


def single(**changes: Any) -> JaniEnv:
    return JaniEnv(walk_model(), **(ARGUMENTS | changes))


def last_applicable(masks: Any) -> Any:
    return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


def rounded(*values: Any) -> list[Any]:
    return [np.asarray(value, np.float64).round(9).tolist() for value in values]


def test_spaces_are_batches_of_the_single_ones() -> None:
    env = vector(4)
    assert env.single_observation_space == single().observation_space
    assert env.observation_space.shape == (4, 2)
    assert env.action_space == gym.spaces.MultiDiscrete([3] * 4)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_copies_live_through_the_episodes_of_single_environments(mode: str) -> None:
    """The reference is Gymnasium's own vector of single environments."""
    ours = vector(5, autoreset_mode=mode)
    reference = gym.vector.SyncVectorEnv([single] * 5, autoreset_mode=AutoresetMode(mode))
    found, infos = ours.reset(seed=11)
    expected, expected_infos = reference.reset(seed=11)
    for _ in range(300):
        assert rounded(found) == rounded(expected)
        assert infos["action_mask"].tolist() == expected_infos["action_mask"].tolist()
        assert infos["state"].tolist() == expected_infos["state"].tolist()
        actions = last_applicable(infos["action_mask"])
        found, *rest, infos = ours.step(actions)
        expected, *expected_rest, expected_infos = reference.step(actions)
        assert rounded(*rest) == rounded(*expected_rest)
        assert infos["outcome"].tolist() == expected_infos["outcome"].tolist()
        assert infos["cost"].tolist() == expected_infos["cost"].tolist()


def test_same_step_tells_how_the_ended_episodes_ended() -> None:
    ours = vector(5, autoreset_mode="SameStep")
    reference = gym.vector.SyncVectorEnv([single] * 5, autoreset_mode=AutoresetMode.SAME_STEP)
    _, infos = ours.reset(seed=2)
    reference.reset(seed=2)
    seen = 0
    for _ in range(100):
        actions = last_applicable(infos["action_mask"])
        *_, infos = ours.step(actions)
        *_, expected = reference.step(actions)
        assert ("final_info" in infos) == ("final_info" in expected)
        if "final_info" not in infos:
            continue
        seen += 1
        assert infos["_final_obs"].tolist() == expected["_final_obs"].tolist()
        for i in np.flatnonzero(infos["_final_obs"]):
            assert infos["final_obs"][i].tolist() == expected["final_obs"][i].tolist()
            for name in ("outcome", "cost", "is_success", "action_mask", "state"):
                ended, other = infos["final_info"][name][i], expected["final_info"][name][i]
                assert np.array_equal(ended, other)
    assert seen > 10


def test_without_autoreset_ended_copies_wait_for_their_reset() -> None:
    env = vector(2, autoreset_mode="Disabled", step_limit=1)
    env.reset(seed=0)
    _, infos = env.reset(options=at(0))
    *_, truncations, infos = env.step(np.array([RIGHT, RIGHT]))
    assert truncations.all()
    with pytest.raises(ResetNeeded, match="environment 0 has ended its episode"):
        env.step(np.array([RIGHT, RIGHT]))
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["_state"].tolist() == [True, False]
    with pytest.raises(ResetNeeded, match="environment 1"):
        env.step(np.array([RIGHT, RIGHT]))


def test_all_copies_can_start_in_a_chosen_state() -> None:
    env = vector(3)
    env.reset(seed=0)
    assert env.reset(options=at(5))[0][:, 0].tolist() == [5.0, 5.0, 5.0]
    assert env.step(np.full(3, LEFT))[0][:, 0].tolist() == [4.0, 4.0, 4.0]


def test_a_start_that_is_an_end_ends_with_the_first_step() -> None:
    env = vector(2)
    env.reset(options=at(DEAD_END))
    _, _, terminations, _, infos = env.step(np.array([LEFT, RIGHT]))
    assert terminations.all()
    assert infos["outcome"].tolist() == ["deadlock", "deadlock"]


def test_an_inapplicable_action_names_its_copy_and_moves_none() -> None:
    env = vector(3)
    env.reset(seed=0)
    env.reset(options=at(0))
    with pytest.raises(ActionError, match=r"action 0 \(left\) of environment 1 .*applicable: 1"):
        env.step(np.array([RIGHT, LEFT, RIGHT]))
    assert env.states[:, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("choice", ["noop", "terminate"])
def test_inapplicable_actions_are_treated_as_in_single_environments(choice: str) -> None:
    changes = {"invalid_action": choice}
    ours = vector(4, **changes)
    reference = gym.vector.SyncVectorEnv([lambda: single(**changes)] * 4)
    ours.reset(seed=1)
    reference.reset(seed=1)
    for number in range(100):
        actions = np.array([LEFT, RIGHT, number % 3, (number + 1) % 3])
        found = ours.step(actions)
        expected = reference.step(actions)
        assert rounded(*found[:4]) == rounded(*expected[:4])


@pytest.mark.parametrize("actions", [[0.5, 1.0, 1.0], ["a"] * 3, [None] * 3, 1, [[1], [1], [1]]])
def test_actions_that_are_no_integers_are_refused(actions: Any) -> None:
    envs = vector()
    envs.reset(seed=0)
    with pytest.raises(ActionError, match="expected 3 actions"):
        envs.step(actions)


def test_seeds_may_be_numpy_integers() -> None:
    seeds = [3, 1, 2]
    assert vector().reset(seed=list(np.array(seeds)))[0].tolist() == (
        vector().reset(seed=seeds)[0].tolist()
    )


@pytest.mark.parametrize("count", ["two", None, 1.5, float("inf"), 0, True])
def test_the_number_of_copies_is_a_whole_number(count: Any) -> None:
    with pytest.raises(ConfigError, match="num_envs must be an integer at least 1"):
        vector(count)


def test_a_mask_of_another_shape_is_refused() -> None:
    class Narrow:
        def mask(self, state: Any) -> Any:
            return np.ones(1, np.bool_)

    envs = vector()
    envs.reset(seed=0)
    envs.set_shield(Narrow())
    with pytest.raises(ConfigError, match="shape"):
        envs.action_masks()


def test_wrong_numbers_of_actions_and_seeds_are_refused() -> None:
    env = vector(3)
    with pytest.raises(ConfigError, match="3 environments need as many seeds"):
        env.reset(seed=[1, 2])
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, np.int64))
    env.reset(seed=0)
    with pytest.raises(ActionError, match="expected 3 actions"):
        env.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("given", [{"num_envs": 0}, {"autoreset_mode": "Never"}])
def test_wrong_arguments_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        vector(**given)


class NoJumps:
    def mask(self, state: Any) -> Any:
        return np.array([True, True, False])


def test_a_shield_is_in_all_masks() -> None:
    env = vector(2)
    env.set_shield(NoJumps())
    env.reset(seed=0)
    _, infos = env.reset(options=at(3))
    assert infos["action_mask"].tolist() == [[1, 1, 0], [1, 1, 0]]
    assert env.action_masks().tolist() == [[True, True, False]] * 2


def test_a_shield_is_in_the_masks_of_last_states_too() -> None:
    env = vector(2, autoreset_mode="SameStep", step_limit=1)
    env.set_shield(NoJumps())
    env.reset(options=at(4))
    *_, infos = env.step(np.full(2, LEFT))
    assert infos["final_info"]["action_mask"].tolist() == [[1, 1, 0], [1, 1, 0]]


def test_integers_that_floats_cannot_hold_are_refused() -> None:
    env = JaniVectorEnv(walk_model(upper=2**30), 2, properties=walk_properties())
    env.reset(seed=0)
    with pytest.raises(StateError, match="does not fit a float32 observation"):
        env.reset(options={"state": [2**24 + 1, 2]})


def test_a_pickled_vector_goes_on_like_the_original() -> None:
    env = vector(4)
    _, infos = env.reset(seed=8)
    for _ in range(20):
        *_, infos = env.step(last_applicable(infos["action_mask"]))
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(100):
        actions = last_applicable(infos["action_mask"])
        first, second = env.step(actions), twin.step(actions)
        infos = first[4]
        assert rounded(*first[:4]) == rounded(*second[:4])


def test_make_vec_uses_the_native_batch() -> None:
    env = gym.make_vec("safetest/OneWayLine-v0", num_envs=4, packages=3, locations=5)
    assert isinstance(env.unwrapped, JaniVectorEnv)
    observations, infos = env.reset(seed=0)
    assert observations.shape == (4, 9)
    assert infos["action_mask"].shape == (4, 5)
