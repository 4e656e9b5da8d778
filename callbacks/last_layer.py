"""Put a repaired last layer into a learner without its noticing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from safetest_gym.policies import MlpPolicy

__all__ = ["LastLayer"]


class LastLayer:
    """The linear layer that gives a learner's scores, in place.

    Parameters stay the objects that the optimizer knows; moments of entries that change
    start anew, target networks get the same values.
    """

    def __init__(self, model: BaseAlgorithm) -> None:
        self._policy: Any = model.policy
        self._linear = _scores_of(self._policy)
        self._old = [value.detach().clone() for value in self._parameters()]

    def _parameters(self) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
        return self._linear.weight, self._linear.bias

    def change(self, before: MlpPolicy, after: MlpPolicy) -> None:
        """Add what a repair changed; in QR-DQN to every quantile alike."""
        copies = self._linear.out_features // before.interface.num_actions
        old, new = before.layers[-1], after.layers[-1]
        for name, parameter in zip(("weight", "bias"), self._parameters(), strict=True):
            value = np.array(getattr(new, name), np.float32)
            if copies > 1:
                change = value.astype(np.float64) - getattr(old, name)
                value = parameter.detach().cpu().numpy() + np.concatenate([change] * copies)
            self._write(parameter, torch.from_numpy(value.astype(np.float32)))
        self._synchronise()

    def roll_back(self) -> None:
        """Put the old values back."""
        for parameter, value in zip(self._parameters(), self._old, strict=True):
            self._write(parameter, value)
        self._synchronise()

    def _write(self, parameter: torch.nn.Parameter, value: torch.Tensor) -> None:
        with torch.no_grad():
            changed = parameter != value.to(parameter.device)
            parameter.copy_(value)
            for moment in self._policy.optimizer.state.get(parameter, {}).values():
                if isinstance(moment, torch.Tensor) and moment.shape == changed.shape:
                    moment[changed] = 0.0

    def _synchronise(self) -> None:
        """Target networks must not pull the old decisions back."""
        for name in ("q_net", "quantile_net"):
            if hasattr(self._policy, f"{name}_target"):
                target = _scores_of(self._policy, f"{name}_target")
                target.load_state_dict(self._linear.state_dict())


def _scores_of(policy: Any, name: str = "") -> Any:
    """The module that gives logits, Q-values or quantiles."""
    if hasattr(policy, "action_net"):
        return policy.action_net
    net = getattr(policy, name or ("quantile_net" if hasattr(policy, "quantile_net") else "q_net"))
    return (net.quantile_net if hasattr(net, "quantile_net") else net.q_net)[-1]
