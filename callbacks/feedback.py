"""FeedbackCallback: faults as penalties, start states and experience, for any learner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from safetest_gym.callbacks.experience import FaultExperience
from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.learner import environment_of, exact_states
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.repair.shields import FaultShield

__all__ = ["FeedbackCallback"]


class FeedbackCallback(TestFollower):
    """Gives faults back to learners, also to those that know no masks.

    Logged under ``feedback/``: penalties (hits of known faults in training), pool (states),
    transitions.

    Args:
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        penalty: taken from the reward of a step that repeats a known fault; episode returns
            that are logged do not contain it.
        start_share: of the episodes, to begin in states shortly before failures and
            cycles; needs environments in `PriorityStarts`.
        pool_size: such states that are kept, the newest.
        transitions: real ones that are added to the replay buffer per new fault, for the
            action that was wrong and for each that is safe there.
    """

    def __init__(
        self,
        *,
        tests: Tests = None,
        penalty: float = 0.0,
        start_share: float = 0.0,
        pool_size: int = 1000,
        transitions: int = 0,
    ) -> None:
        super().__init__(tests)
        if penalty < 0 or transitions < 0 or pool_size < 1 or not 0 <= start_share <= 1:
            raise ConfigError(
                "penalty and transitions must not be negative, pool_size at least 1 and "
                f"start_share between 0 and 1; got {penalty}, {transitions}, {pool_size} and "
                f"{start_share}"
            )
        if not penalty and not start_share and not transitions:
            raise ConfigError("give a penalty, a start_share or a number of transitions")
        self.penalty, self.start_share = penalty, start_share
        self.pool_size, self.transitions = pool_size, transitions
        self.penalties = self.added = 0
        self._pool: dict[bytes, NDArray[Any]] = {}
        self._faults: FaultShield | None = None
        self._experience: FaultExperience | None = None
        self._states = np.empty((0, 0))

    @property
    def pool(self) -> NDArray[Any]:
        """States that episodes may begin in, (n, V)."""
        task = self.tests.task
        return np.array(list(self._pool.values()), task.dtype).reshape(-1, task.num_variables)

    def _begin(self) -> None:
        env = environment_of(self.model)
        if self.start_share and not env.has_attr("set_starts"):
            raise ConfigError(
                "start_share needs environments that can begin anywhere: wrap each JaniEnv, "
                "PriorityStarts(JaniEnv(...)), and use DummyVecEnv or SubprocVecEnv"
            )
        if self.transitions and not isinstance(self.model, OffPolicyAlgorithm):
            raise ConfigError(
                f"{type(self.model).__name__} has no replay buffer for transitions; use DQN, "
                "QR-DQN or MaskableDQN, or give a penalty instead"
            )
        if self._faults is None:
            self._faults = FaultShield(self.tests.task)
        if isinstance(self.model, OffPolicyAlgorithm) and self.transitions and not self._experience:
            self._experience = FaultExperience(self.model, self.tests.task, self.penalty)
        self._states = exact_states(env)

    def _on_faults(self, new: Sequence[Fault]) -> None:
        assert self._faults is not None
        self._faults.add(new)
        if self._experience is not None:
            for _ in range(self.transitions):
                self.added += self._experience.add(new)

    def _on_test(self) -> None:
        """Renew the pool, and log."""
        found = self.tests.latest
        if self.start_share and found is not None:
            for state in np.concatenate([found.before_cycles, found.before_failures]):
                self._pool.pop(state.tobytes(), None)
                self._pool[state.tobytes()] = state
            for key in list(self._pool)[: -self.pool_size]:
                del self._pool[key]
            environment_of(self.model).env_method("set_starts", self.pool, self.start_share)
        self.logger.record("feedback/penalties", self.penalties)
        self.logger.record("feedback/pool", len(self._pool))
        self.logger.record("feedback/transitions", self.added)

    def _on_each_step(self) -> None:
        if not self.penalty:
            return
        assert self._faults is not None
        if len(self._faults):
            actions = np.asarray(self.locals["actions"]).reshape(-1)
            permitted = self._faults.mask_many(self._states)
            hits = ~permitted[np.arange(len(actions)), actions]
            if hits.any():
                self.penalties += int(hits.sum())
                self._rewards()[hits] -= self._scaled_penalty()
        self._states = exact_states(environment_of(self.model))

    def _rewards(self) -> NDArray[Any]:
        """The array from which the learner is about to take the rewards of this step."""
        normalize = self.model.get_vec_normalize_env()
        if normalize is not None and isinstance(self.model, OffPolicyAlgorithm):
            original: NDArray[Any] = normalize.old_reward  # what goes into replay buffers
            return original
        rewards: NDArray[Any] = self.locals["rewards"]
        return rewards

    def _scaled_penalty(self) -> float:
        """In the units of those rewards."""
        normalize: VecNormalize | None = self.model.get_vec_normalize_env()
        plain = normalize is None or isinstance(self.model, OffPolicyAlgorithm)
        if plain or normalize is None or not normalize.norm_reward:
            return self.penalty
        return float(self.penalty / np.sqrt(normalize.ret_rms.var + normalize.epsilon))
