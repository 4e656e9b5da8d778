"""A shield around a single environment, also for learners that know no masks."""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat, get_args

import gymnasium
import numpy as np
from numpy.typing import NDArray

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.shielding import never_empty, shielded
from safetest_gym.errors import ConfigError
from safetest_gym.repair.shields import Shield, require_same_task

__all__ = ["Mode", "ShieldWrapper"]

Mode = Literal["mask", "replace"]
Observation = NDArray[np.floating[Any]]
Step = tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]


class ShieldWrapper(gymnasium.Wrapper[Observation, np.int64, Observation, np.int64]):
    """Keeps forbidden actions from a `JaniEnv`.

    ``mask``: takes them out of ``action_masks()`` and ``info["action_mask"]``, for learners
    that use these. ``replace``: takes a random permitted action instead of one that is
    forbidden or not applicable, and says so in ``info``: ``action_taken`` and
    ``action_replaced``.

    Args:
        seed: of the replacements; they do not touch the environment's random state.
    """

    def __init__(
        self,
        env: gymnasium.Env[Observation, np.int64],
        shield: Shield,
        *,
        mode: Mode = "mask",
        seed: int = 0,
    ) -> None:
        inner = env.unwrapped
        if not isinstance(inner, JaniEnv):
            raise ConfigError(
                f"a shield needs the exact state, which a {type(inner).__name__} does not tell; "
                "wrap a JaniEnv"
            )
        if mode not in get_args(Mode):
            raise ConfigError(f"mode must be 'mask' or 'replace', got {mode!r}")
        require_same_task(shield, inner.task)
        super().__init__(env)
        self._inner, self.shield, self.mode = inner, shield, mode
        self._random = np.random.default_rng(seed)
        if mode == "mask":
            inner.set_shield(shield)

    def step(
        self, action: np.int64
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take the action, or in mode ``replace`` perhaps another one."""
        if self.mode == "mask":
            return self.env.step(action)
        if action not in self.action_space:
            return self.env.step(action)  # which says what is wrong
        mask = self._permitted()
        taken = action
        if not mask[int(action)]:
            taken = np.int64(self._random.choice(np.flatnonzero(mask)))
        observation, reward, terminated, truncated, info = self.env.step(taken)
        info["action_taken"] = int(taken)
        info["action_replaced"] = bool(taken != action)
        return observation, reward, terminated, truncated, info

    def _permitted(self) -> NDArray[np.int8]:
        state = self._inner.state
        applicable = self._inner.task.applicable(state).astype(np.int8)
        return never_empty(shielded(applicable, self.shield, state))
