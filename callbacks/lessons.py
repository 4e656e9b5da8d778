"""Lessons: a policy learns what masks hide from it.

A masked action is never taken, so its probability never gets a gradient, and a policy
trained under a shield needs it for ever. A lesson is a few steps of gradient descent on
-log P(permitted actions) in states that the shield restricts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from safetest_gym.errors import ConfigError
from safetest_gym.policies import policy_from_sb3
from safetest_gym.policies.scaling import scaled_features
from safetest_gym.repair.shields import Shield

__all__ = ["LAST_ROUNDS", "Lessons"]

LAST_ROUNDS = 8
"""How often, when training ends, faults are looked for and lessons given at most."""

_RATE = 1e-3

_ENOUGH = 0.95
"""States where permitted actions have this probability need no lesson."""


class Lessons:
    """Keeps restricted states, and teaches the actor of a PPO, A2C or MaskablePPO in them.

    Only weights that lead to the logits change, with an optimizer of its own; the learner's
    optimizer, its random state and its value function are not touched.

    Args:
        steps: of gradient descent per lesson.
        kept: states, the newest.
    """

    def __init__(self, steps: int, *, kept: int = 512) -> None:
        if steps < 0:
            raise ConfigError(f"lessons must not be negative, got {steps}")
        self.steps, self._kept = steps, kept
        self._states: dict[bytes, NDArray[Any]] = {}
        self._optimizer: torch.optim.Optimizer | None = None
        self._owner: Any = None

    def add(self, states: NDArray[Any]) -> None:
        """Remember restricted states (n, V)."""
        for state in states:
            self._states.pop(state.tobytes(), None)
            self._states[state.tobytes()] = state
        for key in list(self._states)[: -self._kept]:
            del self._states[key]

    def give(self, model: BaseAlgorithm, shield: Shield) -> float:
        """One lesson; in which fraction of the states it was needed."""
        if not self._states or not self.steps:
            return 0.0
        states = np.array(list(self._states.values()))
        applicable = shield.task.applicable_many(states)
        allowed = shield.allowed(states)
        policy: Any = model.policy
        inputs = policy_from_sb3(model)
        features = scaled_features(states[:, list(inputs.interface.columns)], inputs.scalings)
        observed = torch.as_tensor(features, device=policy.device)
        masks = [torch.as_tensor(mask, device=policy.device) for mask in (allowed, applicable)]
        optimizer = self._optimizer_of(model)
        needed = 0.0
        for step in range(self.steps):
            logits = policy.get_distribution(observed).distribution.logits
            within = [logits.masked_fill(~mask, -torch.inf).logsumexp(dim=1) for mask in masks]
            chance = within[0] - within[1]
            open_ = chance < float(np.log(_ENOUGH))
            if step == 0:
                needed = float(open_.float().mean())
            if not open_.any():
                break
            loss = -chance[open_].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        policy.zero_grad()
        return needed

    def _optimizer_of(self, model: BaseAlgorithm) -> torch.optim.Optimizer:
        policy: Any = model.policy
        if self._optimizer is None or self._owner is not policy:
            self._owner = policy
            parts = (policy.mlp_extractor.policy_net, policy.action_net)
            weights = [weight for part in parts for weight in part.parameters()]
            self._optimizer = torch.optim.Adam(weights, lr=_RATE)
        return self._optimizer
