"""MaskableDQN explores, learns and predicts among allowed actions only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from safetest_gym.errors import ActionError, ConfigError
from safetest_gym.policies import policy_from_sb3
from tests.oracles.masked_env import JUMP, STAY, MaskedLine
from tests.oracles.policies import interface

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from safetest_gym.policies.maskable_dqn import MaskableDQN, MaskedSamples

pytestmark = pytest.mark.usefixtures("one_thread")


def _model(env: Any = None, **options: Any) -> MaskableDQN:
    settings: dict[str, Any] = {
        "policy_kwargs": {"net_arch": [16]},
        "learning_starts": 200,
        "buffer_size": 5000,
        "target_update_interval": 200,
        "exploration_fraction": 0.3,
        "learning_rate": 2e-3,
        "seed": 0,
        "device": "cpu",
    }
    return MaskableDQN("MlpPolicy", env or MaskedLine(), **{**settings, **options})


def test_no_inapplicable_action_is_taken_while_learning() -> None:
    # The environment asserts it at every step.
    environments = [MaskedLine() for _ in range(4)]
    vector = DummyVecEnv([lambda e=e: e for e in environments])  # type: ignore[misc]
    _model(vector).learn(4000)
    taken = np.sum([environment.taken for environment in environments], axis=0)
    assert taken.sum() == 4000
    assert taken[STAY] == 0
    assert taken[JUMP] > 100


@pytest.mark.slow
def test_no_inapplicable_action_is_taken_in_a_hundred_thousand_steps() -> None:
    environment = MaskedLine()
    _model(environment, train_freq=16).learn(100_000)
    assert environment.taken.sum() == 100_000
    assert environment.taken[STAY] == 0


@pytest.mark.slow
def test_it_learns_the_shortest_way() -> None:
    model = _model(gamma=0.9, policy_kwargs={"net_arch": [32, 32]})
    model.learn(6000)
    environment = MaskedLine()
    lengths = []
    for seed in range(20):
        observation, _ = environment.reset(seed=seed)
        ended, steps = False, 0
        while not ended and steps < 30:
            action, _ = model.predict(
                observation, deterministic=True, action_masks=environment.action_masks()
            )
            observation, _, ended, _, _ = environment.step(int(action))
            steps += 1
        lengths.append(steps)
    assert max(lengths) <= 8


def test_before_learning_starts_random_actions_are_spread_over_the_allowed_ones() -> None:
    environment = MaskedLine()
    _model(environment, learning_starts=3000).learn(2900)
    assert environment.taken.min(initial=3000, where=np.array([False, True, True, True])) > 100


def test_the_mask_stored_for_a_truncated_state_is_that_state_s_own() -> None:
    class Ends(MaskedLine):
        """Truncates at once, at place 2 with fuel, and restarts at place 7."""

        def reset(self, **kwargs: Any) -> Any:
            super().reset(**kwargs)
            self.place, self.fuel = 7, 0
            return self._observation(), self._info()

        def step(self, action: Any) -> Any:
            self.place, self.fuel = 2, 1
            return self._observation(), 0.0, False, True, self._info()

    model = _model(Ends())
    model.learn(20)
    buffer: Any = model.replay_buffer
    assert buffer.next_masks[:20, 0].tolist() == [[False, True, True, True]] * 20
    assert buffer.timeouts[:20].all()


def test_without_masks_in_info_everything_counts_as_allowed_after_truncation() -> None:
    model = _model(MaskedLine(limit=1, masks_in_info=False))
    model.learn(50)
    buffer: Any = model.replay_buffer
    assert buffer.next_masks[:50, 0].all()


def test_masks_stored_in_between_are_those_of_the_next_state() -> None:
    model = _model(MaskedLine())
    model.learn(300)
    buffer: Any = model.replay_buffer
    for i in np.flatnonzero(buffer.dones[:300, 0] == 0):
        place, fuel, odd = buffer.next_observations[i, 0]
        assert buffer.next_masks[i, 0].tolist() == [False, place > 0, True, fuel > 0 and not odd]


def _batch(allowed: list[bool], done: bool = False) -> MaskedSamples:
    return MaskedSamples(
        observations=torch.zeros(1, 3),
        actions=torch.zeros(1, 1),
        next_observations=torch.zeros(1, 3),
        dones=torch.tensor([[float(done)]]),
        rewards=torch.tensor([[0.5]]),
        next_masks=torch.tensor([allowed]),
    )


def _with_values(model: MaskableDQN, online: list[float], target: list[float]) -> MaskableDQN:
    model.q_net.forward = lambda _: torch.tensor([online])  # type: ignore[method-assign,assignment]
    model.q_net_target.forward = lambda _: torch.tensor([target])  # type: ignore[method-assign,assignment]
    return model


def test_targets_take_the_maximum_over_allowed_actions() -> None:
    model = _with_values(_model(double_q=False, gamma=0.5), [0, 0, 0, 0], [9.0, 2.0, 4.0, 8.0])
    assert model._targets(_batch([False, True, True, False])).tolist() == [[2.5]]


def test_double_q_chooses_online_among_allowed_and_rates_with_the_target() -> None:
    model = _with_values(_model(gamma=0.5), [9.0, 5.0, 1.0, 0.0], [7.0, 2.0, 4.0, 8.0])
    assert model._targets(_batch([False, True, True, True])).tolist() == [[1.5]]


def test_targets_of_dead_ends_are_the_reward_alone() -> None:
    model = _with_values(_model(), [1.0] * 4, [1.0] * 4)
    assert model._targets(_batch([False] * 4, done=True)).tolist() == [[0.5]]


def test_predict_takes_one_observation_or_many() -> None:
    model = _model()
    one, _ = model.predict(np.zeros(3, np.float32), action_masks=np.array([0, 0, 0, 1]))
    many, _ = model.predict(np.zeros((5, 3), np.float32), action_masks=np.eye(4)[[0, 1, 2, 3, 0]])
    assert int(one) == 3
    assert many.tolist() == [0, 1, 2, 3, 0]


def test_a_mask_that_allows_nothing_is_refused() -> None:
    with pytest.raises(ActionError, match="no action at all"):
        _model().predict(np.zeros(3, np.float32), action_masks=np.zeros(4))


def test_an_environment_without_masks_is_refused() -> None:
    model = _model(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="action_masks"):
        model.learn(10)


def test_n_step_returns_are_refused() -> None:
    with pytest.raises(ConfigError, match="n_steps"):
        _model(n_steps=3)


def test_a_saved_model_predicts_alike_and_goes_on_learning(tmp_path: Path) -> None:
    model = _model(double_q=False)
    model.learn(400)
    model.save(tmp_path / "model.zip")
    again = MaskableDQN.load(tmp_path / "model.zip", env=MaskedLine(), device="cpu")
    states = np.random.default_rng(0).integers(0, 8, (200, 3)).astype(np.float32)
    masks = np.ones((200, 4), dtype=bool)
    wanted, _ = model.predict(states, deterministic=True, action_masks=masks)
    found, _ = again.predict(states, deterministic=True, action_masks=masks)
    assert (wanted == found).all()
    assert again.double_q is False
    again.learn(300, reset_num_timesteps=False)


def test_its_replay_buffer_survives_saving(tmp_path: Path) -> None:
    model = _model()
    model.learn(300)
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    again = _model()
    again.load_replay_buffer(tmp_path / "buffer.pkl")
    stored: Any = again.replay_buffer
    assert (stored.next_masks == model.replay_buffer.next_masks).all()  # type: ignore[union-attr]


def test_two_trainings_with_one_seed_are_the_same() -> None:
    states = np.random.default_rng(0).integers(0, 8, (50, 3))
    scores = []
    for _ in range(2):
        model = _model()
        model.learn(600)
        scores.append(policy_from_sb3(model, interface(3, 4)).scores(states))
    assert (scores[0] == scores[1]).all()


class _HashShield:
    """Forbids two of the actions in most states, by a hash."""

    def mask(self, state: Any, /) -> Any:
        return self.mask_many(state[None])[0]

    def mask_many(self, states: Any) -> Any:
        permitted = np.ones((len(states), 5), dtype=np.bool_)
        mixed, rows = states.sum(axis=1) * 7 + states[:, -2] * 3, np.arange(len(states))
        permitted[rows, mixed % 5] = permitted[rows, mixed // 5 % 5] = False
        return permitted


def _refused(steps: int, shield: Any, copies: int = 16) -> int:
    """How many actions, of a whole training, were not allowed in the state they were taken in."""
    from safetest_gym.envs.sb3_vec_env import SB3VecEnv
    from safetest_gym.envs.tasks.one_way_line import OneWayLine

    seen = np.zeros(2, dtype=np.int64)

    class Watched(SB3VecEnv):
        def step_async(self, actions: Any) -> None:
            states = self.states
            allowed = self.task.applicable_many(states)
            if shield is not None:
                both = allowed & shield.mask_many(states)
                allowed = np.where(both.any(axis=1, keepdims=True), both, allowed)
            seen[:] += len(actions), (~allowed[np.arange(len(actions)), actions]).sum()
            super().step_async(actions)

    line = OneWayLine(packages=3, locations=5, variant="icy")
    env = Watched(line, copies, observation="normalized", step_limit=60)
    env.set_shield(shield)
    options = {"learning_starts": steps // 5, "train_freq": 4, "exploration_fraction": 0.5}
    _model(env, **options).learn(steps)
    assert seen[0] >= steps
    return int(seen[1])


@pytest.mark.parametrize("shield", [None, _HashShield()])
def test_neither_inapplicable_nor_shielded_actions_are_taken(shield: Any) -> None:
    assert _refused(3000, shield) == 0


@pytest.mark.slow
def test_no_action_that_is_not_allowed_is_taken_in_a_million_steps() -> None:
    assert _refused(1_000_000, _HashShield(), 64) == 0
