"""Real transitions from fault states, for replay buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from safetest_gym.callbacks.learner import environment_of
from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.faults import Fault
from safetest_gym.policies.maskable_dqn import MaskableReplayBuffer
from safetest_gym.task import Task

__all__ = ["FaultExperience"]

_OPTIONS = ("observation", "observed", "reward", "invalid_action", "step_limit")
Row = tuple[Any, Any, int, float, bool, dict[str, Any]]


class FaultExperience:
    """Steps an environment of its own, like those of training, from fault states.

    Rows wait until there is one for every copy that the replay buffer expects.
    """

    def __init__(self, model: OffPolicyAlgorithm, task: Task, penalty: float) -> None:
        self.model = model
        self._penalty = penalty
        options = environment_of(model).get_attr("options", [0])[0]
        arguments: Any = {name: getattr(options, name) for name in _OPTIONS}
        self._env = JaniEnv(task, **arguments)
        self._env.reset(seed=0)
        self._rows: list[Row] = []

    def add(self, faults: Sequence[Fault]) -> int:
        """One sampled outcome of each wrong and each safe action; how many were stored."""
        for fault in faults:
            self._step(fault.state, fault.action, self._penalty)
            for action in fault.alternatives:
                self._step(fault.state, action, 0.0)
        size = self.model.n_envs
        stored = len(self._rows) // size * size
        for first in range(0, stored, size):
            self._store(self._rows[first : first + size])
        self._rows = self._rows[stored:]
        return stored

    def _step(self, state: NDArray[Any], action: int, penalty: float) -> None:
        before, _ = self._env.reset(options={"state": state})
        after, reward, terminated, _, info = self._env.step(action)
        self._rows.append((before, after, action, float(reward) - penalty, terminated, info))

    def _store(self, rows: list[Row]) -> None:
        buffer = self.model.replay_buffer
        assert buffer is not None
        before, after, actions, rewards, ended, infos = zip(*rows, strict=True)
        if isinstance(buffer, MaskableReplayBuffer):
            buffer.add_masks(np.array([info["action_mask"] for info in infos], np.bool_))
        buffer.add(
            np.array(before),
            np.array(after),
            np.array(actions).reshape(-1, 1),
            np.array(rewards, np.float32),
            np.array(ended),
            [{} for _ in rows],
        )
