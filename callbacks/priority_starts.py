"""Episodes that begin where the policy got into trouble before."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from numpy.typing import NDArray

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.errors import ConfigError

__all__ = ["PriorityStarts"]

Observation = NDArray[np.floating[Any]]
Step = tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]


class PriorityStarts(gymnasium.Wrapper[Observation, np.int64, Observation, np.int64]):
    """Begins a share of the episodes in given states, as `FeedbackCallback` sets them.

    ``info["start_source"]`` is ``"pool"`` or ``"task"``, in every step of the episode. The
    choice has a random state of its own, seeded by that of ``reset``.
    """

    def __init__(self, env: gymnasium.Env[Observation, np.int64]) -> None:
        if not isinstance(env.unwrapped, JaniEnv):
            raise ConfigError(
                f"a {type(env.unwrapped).__name__} cannot start in a given state; wrap a JaniEnv"
            )
        super().__init__(env)
        self._pool: NDArray[Any] | None = None
        self._share = 0.0
        self._source = "task"
        self._random = np.random.default_rng(0)

    def set_starts(self, states: NDArray[Any], share: float) -> None:
        """Begin this share of episodes in one of ``states`` (n, V); none if there are none."""
        if not 0 <= share <= 1:
            raise ConfigError(f"share must be between 0 and 1, got {share}")
        self._pool, self._share = (states if len(states) else None), share

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; options that name a start are obeyed."""
        if seed is not None:
            self._random = np.random.default_rng([seed, 1])
        self._source = "task"
        if not options and self._pool is not None and self._random.random() < self._share:
            self._source = "pool"
            options = {"state": self._pool[self._random.integers(len(self._pool))]}
        observation, info = self.env.reset(seed=seed, options=options)
        info["start_source"] = self._source
        return observation, info

    def step(self, action: np.int64) -> Step:
        """As before, and where the episode began."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info["start_source"] = self._source
        return observation, reward, terminated, truncated, info
