"""Put repaired weights into a learner without its noticing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from safetest_gym.policies import MlpPolicy
from safetest_gym.repair.sb3_model import changed_tensors

__all__ = ["LearnerNetwork"]

_TARGETS = {"q_net.": "q_net_target.", "quantile_net.": "quantile_net_target."}


class LearnerNetwork:
    """The weights of a learner, changed in place.

    Parameters stay the objects that the optimizer knows; moments of entries that change
    start anew, and target networks, which must not pull old decisions back, become the same.
    """

    def __init__(self, model: BaseAlgorithm) -> None:
        self._policy: Any = model.policy
        self._old = {name: value.detach().clone() for name, value in self._parameters().items()}
        self._moments: list[tuple[torch.Tensor, torch.Tensor]] = []

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        return dict(self._policy.named_parameters())

    def change(self, before: MlpPolicy, after: MlpPolicy) -> None:
        """Write what a repair changed; in QR-DQN to every quantile alike."""
        parameters = self._parameters()
        values = changed_tensors(self._policy.state_dict(), before, after)
        for name, target in _twins(parameters).items():
            values[target] = values[name]
        for parameter in parameters.values():
            for moment in self._moments_of(parameter):
                self._moments.append((moment, moment.clone()))
        self._write(values)

    def roll_back(self) -> None:
        """Put everything back as it was."""
        self._write(self._old)
        for moment, old in self._moments:
            moment.copy_(old)

    def _write(self, values: Mapping[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters().items():
                changed = parameter != values[name]
                if not changed.any():
                    continue
                parameter.copy_(values[name])
                for moment in self._moments_of(parameter):
                    moment[changed] = 0.0

    def _moments_of(self, parameter: torch.nn.Parameter) -> list[torch.Tensor]:
        held = self._policy.optimizer.state.get(parameter, {}).values()
        return [
            moment
            for moment in held
            if isinstance(moment, torch.Tensor) and moment.shape == parameter.shape
        ]


def _twins(names: Mapping[str, Any]) -> dict[str, str]:
    """Parameters that have a target network's beside them."""
    pairs = {
        name: target + name.removeprefix(source)
        for name in names
        for source, target in _TARGETS.items()
        if name.startswith(source)
    }
    return {name: target for name, target in pairs.items() if target in names}
