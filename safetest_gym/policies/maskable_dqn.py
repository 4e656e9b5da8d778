"""DQN that explores, learns and predicts among allowed actions only.

Environments say what is allowed through ``action_masks()``, as for sb3-contrib's
MaskablePPO. Importing this module loads torch and Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from safetest_gym.errors import ActionError, ConfigError

__all__ = ["MaskableDQN", "MaskableReplayBuffer"]

Masks = NDArray[np.bool_]


class MaskedSamples(NamedTuple):
    """A batch from `MaskableReplayBuffer`; the names are those of Stable-Baselines3."""

    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor
    next_masks: torch.Tensor


class MaskableReplayBuffer(ReplayBuffer):
    """A replay buffer that keeps which actions are allowed in the next state."""

    def __init__(
        self, buffer_size: int, observation_space: spaces.Space[Any], *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        if self.optimize_memory_usage:
            raise ConfigError("optimize_memory_usage does not go together with action masks")
        if not isinstance(self.action_space, spaces.Discrete):
            raise ConfigError(f"action masks need Discrete actions, got {self.action_space}")
        shape = (self.buffer_size, self.n_envs, int(self.action_space.n))
        self.next_masks: Masks = np.ones(shape, dtype=np.bool_)

    def add_masks(self, masks: Masks) -> None:
        """Keep the masks of the states that the next `add` leads to, shape (n_envs, A)."""
        self.next_masks[self.pos] = masks

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """`MaskedSamples` drawn from the action space's stream, which the model's seed sets."""
        stream = self.action_space.np_random
        batch = stream.integers(self.buffer_size if self.full else self.pos, size=batch_size)
        return self._get_samples(batch, env)

    def _get_samples(self, batch_inds: NDArray[np.int64], env: VecNormalize | None = None) -> Any:
        envs = self.action_space.np_random.integers(self.n_envs, size=len(batch_inds))
        rows = (batch_inds, envs)
        dones = self.dones[rows] * (1 - self.timeouts[rows])
        before: Any = self._normalize_obs(self.observations[rows], env)
        after: Any = self._normalize_obs(self.next_observations[rows], env)
        return MaskedSamples(
            observations=self.to_torch(before),
            actions=self.to_torch(self.actions[rows]),
            next_observations=self.to_torch(after),
            dones=self.to_torch(dones.reshape(-1, 1)),
            rewards=self.to_torch(self._normalize_reward(self.rewards[rows].reshape(-1, 1), env)),
            next_masks=self.to_torch(self.next_masks[rows]),
        )


class MaskableDQN(DQN):
    """`stable_baselines3.DQN` over allowed actions.

    Random actions (also before ``learning_starts``) are drawn among the allowed ones,
    targets take the maximum over the actions allowed in the next state, and `predict`
    takes ``action_masks`` like MaskablePPO's. The mask of a state where an episode was
    truncated is ``info["action_mask"]``; from environments that give none, all actions count
    as allowed there.

    Args of its own:
        double_q: choose the next action with the online network and rate it with the
            target network (double DQN), instead of the target network for both.
    """

    def __init__(
        self, policy: Any, env: Any, *args: Any, double_q: bool = True, **kwargs: Any
    ) -> None:
        buffer = kwargs.setdefault("replay_buffer_class", None) or MaskableReplayBuffer
        if not issubclass(buffer, MaskableReplayBuffer):
            raise ConfigError(
                f"replay_buffer_class must be a MaskableReplayBuffer, got {buffer.__name__}"
            )
        if kwargs.get("n_steps", 1) != 1:
            raise ConfigError("n_steps > 1 is not supported: masks of states in between are lost")
        kwargs["replay_buffer_class"] = buffer
        self.double_q = double_q
        super().__init__(policy, env, *args, **kwargs)

    def learn(self, *args: Any, **kwargs: Any) -> MaskableDQN:
        """Train like `DQN.learn`; refuses environments without ``action_masks``."""
        if self.env is None or not is_masking_supported(self.env):
            raise ConfigError(
                "the environment has no action_masks(); wrap it in sb3-contrib's ActionMasker"
            )
        super().learn(*args, **kwargs)
        return self

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | Sequence[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Best allowed action, or with the exploration rate a random allowed one.

        Args:
            action_masks: shape (A,) or (n, A); all actions are allowed without.
        """
        if self.policy.training:
            self.policy.set_training_mode(False)
        tensor, vectorized = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.q_net(tensor)
        masks = self._checked_masks(action_masks, len(values))
        allowed = torch.as_tensor(masks, device=values.device)
        best = values.masked_fill(~allowed, -torch.inf).argmax(dim=1).cpu().numpy()
        if not deterministic:
            explore = self.action_space.np_random.random(len(best)) < self.exploration_rate
            best = np.where(explore, self._random_actions(masks), best)
        return (best if vectorized else best[0]), state

    def _checked_masks(self, masks: NDArray[Any] | Sequence[Any] | None, rows: int) -> Masks:
        actions = int(self.action_space.n)  # type: ignore[attr-defined]  # Discrete
        if masks is None:
            return np.ones((rows, actions), dtype=np.bool_)
        checked = np.asarray(masks, dtype=np.bool_).reshape(-1, actions)
        if len(checked) != rows:
            raise ActionError(f"{len(checked)} action masks for {rows} observations")
        if not checked.any(axis=1).all():
            raise ActionError("an action mask allows no action at all")
        return checked

    def _random_actions(self, masks: Masks) -> NDArray[np.int64]:
        """One uniformly drawn allowed action per row."""
        keys = self.action_space.np_random.random(masks.shape)
        return np.asarray(np.where(masks, keys, -1.0).argmax(axis=1), dtype=np.int64)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        masks = self._current_masks(n_envs)
        if self.num_timesteps < learning_starts:
            actions: NDArray[Any] = self._random_actions(masks)
        else:
            assert self._last_obs is not None
            actions, _ = self.predict(self._last_obs, deterministic=False, action_masks=masks)
        return actions, actions

    def _current_masks(self, n_envs: int) -> Masks:
        assert isinstance(self.env, VecEnv)
        return self._checked_masks(get_action_masks(self.env), n_envs)

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: NDArray[Any],
        new_obs: Any,
        reward: NDArray[Any],
        dones: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        masks = self._current_masks(len(dones)).copy()
        for i in np.flatnonzero(dones):
            # The environment has been reset already: its mask belongs to the next episode.
            masks[i] = infos[i].get("action_mask", True)
        replay_buffer.add_masks(masks)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Like `DQN.train`, with targets over the actions allowed in the next states."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert self.replay_buffer is not None
        losses = []
        for _ in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            targets = self._targets(batch)
            values = self.q_net(batch.observations).gather(1, batch.actions.long())
            loss = torch.nn.functional.smooth_l1_loss(values, targets)
            losses.append(loss.item())
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def _targets(self, batch: MaskedSamples) -> torch.Tensor:
        """Reward plus discounted value of the best allowed next action, shape (n, 1)."""
        with torch.no_grad():
            rated = self.q_net_target(batch.next_observations)
            ranked = self.q_net(batch.next_observations) if self.double_q else rated
            allowed = batch.next_masks.bool()
            best = ranked.masked_fill(~allowed, -torch.inf).argmax(dim=1, keepdim=True)
            following = rated.gather(1, best)
            # Nothing is allowed in a dead end; the value of what follows is zero there.
            following = following.where(allowed.any(dim=1, keepdim=True), 0.0)
            targets: torch.Tensor = batch.rewards + (1 - batch.dones) * self.gamma * following
            return targets
