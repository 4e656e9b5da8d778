"""A small environment with action masks, written by hand to test learners with."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

__all__ = ["MaskedLine"]

LENGTH = 8
STAY, LEFT, RIGHT, JUMP = range(4)


class MaskedLine(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Walk a line of nine places to its right end; an inapplicable action raises.

    At place p with fuel f: left if p > 0, right always, jump (two places) if f > 0 and
    p is even, and never stay: that action exists but is not allowed anywhere.
    """

    def __init__(self, limit: int = 30, *, masks_in_info: bool = True) -> None:
        self.observation_space = spaces.Box(0, LENGTH, (3,), np.float32)
        self.action_space = spaces.Discrete(4)
        self.limit, self.masks_in_info = limit, masks_in_info
        self.place = self.fuel = self.steps = 0
        self.taken = np.zeros(4, dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(0, LENGTH))
        self.fuel, self.steps = int(self.np_random.integers(0, 3)), 0
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        assert self.action_masks()[action], f"inapplicable {action} at {self.place}, {self.fuel}"
        self.taken[action] += 1
        self.place += {LEFT: -1, RIGHT: 1, JUMP: 2}[int(action)]
        self.fuel -= int(action == JUMP)
        self.steps += 1
        ended = self.place >= LENGTH
        truncated = not ended and self.steps >= self.limit
        return self._observation(), float(ended) - 0.01, ended, truncated, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        return np.array(
            [False, self.place > 0, True, self.fuel > 0 and self.place % 2 == 0], dtype=np.bool_
        )

    def _observation(self) -> NDArray[np.float32]:
        return np.array([min(self.place, LENGTH), self.fuel, self.place % 2], dtype=np.float32)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8)} if self.masks_in_info else {}
