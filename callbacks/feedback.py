"""FeedbackCallback: faults as penalties, start states and experience, for any learner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from safetest_gym.callbacks.experience import FaultExperience
from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.learner import environment_of, exact_states
from safetest_gym.callbacks.lessons import LAST_ROUNDS, Lessons
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.policies import policy_from_sb3
from safetest_gym.repair.shields import FaultShield

__all__ = ["FeedbackCallback"]


class FeedbackCallback(TestFollower):
    """Gives faults back to learners, also to those that know no masks.

    Logged under ``feedback/``: penalties (hits of known faults in training), pool (states),
    transitions, lessons_needed_rate.

    Args:
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        penalty: taken from the reward of a step that repeats a known fault; episode returns
            that are logged do not contain it.
        start_share: of the episodes, to begin in states shortly before failures and
            cycles; needs `SB3VecEnv`, or environments in `PriorityStarts`.
        pool_size: such states that are kept, the newest.
        transitions: real ones that are added to the replay buffer per new fault, for the
            action that was wrong and for each that is safe there.
        lessons: steps of gradient descent before each rollout of PPO, A2C or MaskablePPO,
            on the probability of actions other than faults in the fault states met last (see
            `Lessons`); 0 for none.
    """

    def __init__(
        self,
        *,
        tests: Tests = None,
        penalty: float = 1.0,
        start_share: float = 0.0,
        pool_size: int = 1000,
        transitions: int = 0,
        lessons: int = 100,
    ) -> None:
        super().__init__(tests)
        wrong = not 0 <= penalty < math.inf or not 0 <= start_share <= 1 or pool_size < 1
        if wrong or min(transitions, lessons) < 0:
            raise ConfigError(
                "penalty, transitions and lessons must not be negative, pool_size at least 1 and "
                f"start_share between 0 and 1; got {penalty}, {transitions}, {lessons}, "
                f"{pool_size} and {start_share}"
            )
        if not (penalty or start_share or transitions or lessons):
            raise ConfigError("give a penalty, a start_share, lessons or transitions")
        self._lessons = Lessons(lessons)
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
                "start_share needs environments that can begin anywhere: use SB3VecEnv, or wrap "
                "each JaniEnv, PriorityStarts(JaniEnv(...)), in DummyVecEnv or SubprocVecEnv"
            )
        if self.transitions and not isinstance(self.model, OffPolicyAlgorithm):
            raise ConfigError(
                f"{type(self.model).__name__} has no replay buffer for transitions; use DQN, "
                "QR-DQN or MaskableDQN, or give a penalty instead"
            )
        if self._faults is None:
            self._faults = FaultShield(self.tests.task)
        if isinstance(self.model, OffPolicyAlgorithm) and self.transitions:
            known = self._experience
            if known is None or known.model is not self.model:
                self._experience = FaultExperience(self.model, self.tests.task, self.penalty)
        self._states = exact_states(env)

    def _on_faults(self, new: Sequence[Fault]) -> None:
        assert self._faults is not None
        self._faults.add(new)
        states = np.array([fault.state for fault in new])
        self._lessons.add(states)
        self._keep(states)
        self._put_pool()
        if self._experience is not None:
            for _ in range(self.transitions):
                self.added += self._experience.add(new)

    def _on_test(self) -> None:
        """Renew the pool, and log."""
        found = self.tests.latest
        if found is not None:
            self._keep(np.concatenate([found.before_cycles, found.before_failures]))
            self._put_pool()
        self.logger.record("feedback/penalties", self.penalties)
        self.logger.record("feedback/pool", len(self._pool))
        self.logger.record("feedback/transitions", self.added)

    def _keep(self, states: NDArray[Any]) -> None:
        """Put states (n, V) into the pool, the newest last."""
        for state in states:
            self._pool.pop(state.tobytes(), None)
            self._pool[state.tobytes()] = state
        for key in list(self._pool)[: -self.pool_size]:
            del self._pool[key]

    def _put_pool(self) -> None:
        if self.start_share:
            environment_of(self.model).env_method("set_starts", self.pool, self.start_share)

    def _on_training_end(self) -> None:
        """Lessons until no fault is left, or for some rounds."""
        super()._on_training_end()
        for _ in range(LAST_ROUNDS):
            if not self._teach() or not self._search(policy_from_sb3(self.model)):
                break

    def _on_rollout_start(self) -> None:
        self._teach()

    def _teach(self) -> bool:
        """Give a lesson, if this learner gets any."""
        if not isinstance(self.model, OnPolicyAlgorithm) or not self._lessons.steps:
            return False
        assert self._faults is not None
        needed = self._lessons.give(self.model, self._faults)
        self.logger.record("feedback/lessons_needed_rate", needed)
        return True

    def _on_each_step(self) -> None:
        assert self._faults is not None
        if len(self._faults):
            rows = np.arange(len(self._states))
            permitted = self._faults.mask_many(self._states)
            self._lessons.add(self._states[~permitted.all(axis=1)])
            hits = ~permitted[rows, np.asarray(self.locals["actions"]).reshape(-1)]
            if self.penalty and hits.any():
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
