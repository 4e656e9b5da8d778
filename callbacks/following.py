"""What callbacks share that act on the findings of safety tests."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks.learner import environment_of
from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.policies import Policy

__all__ = ["TestFollower", "Tests"]

Tests = SafetyTestCallback | Mapping[str, Any] | None


class TestFollower(BaseCallback):
    """Runs safety tests of its own, or looks at those of a `SafetyTestCallback`.

    Args:
        tests: a `SafetyTestCallback` that stands before this callback in a list, or the
            arguments of one that this callback runs itself, as plain data.

    Attributes:
        steps: timesteps over all calls of ``learn``, those of resumed records included.
    """

    __test__ = False  # not for pytest

    def __init__(self, tests: Tests = None) -> None:
        super().__init__()
        self._owns_tests = not isinstance(tests, SafetyTestCallback)
        if isinstance(tests, SafetyTestCallback):
            self.tests = tests
        else:
            self.tests = SafetyTestCallback(**dict(tests or {}))
        self.steps = self._timesteps = 0
        self._tests_seen = self._faults_seen = 0

    def init_callback(self, model: BaseAlgorithm) -> None:
        """Also for tests of its own."""
        super().init_callback(model)
        if self._owns_tests:
            self.tests.init_callback(model)

    def _on_training_start(self) -> None:
        environment_of(self.model)
        if self._owns_tests:
            self.tests.on_training_start(self.locals, self.globals)
        try:
            _ = self.tests.task
        except ConfigError:
            raise ConfigError(
                f"the SafetyTestCallback given to {type(self).__name__} has not begun; put it "
                "before this callback into the list for learn(callback=[tests, this])"
            ) from None
        self._tests_seen = len(self.tests.history)
        self.steps, self._timesteps = self.tests.steps, self.model.num_timesteps
        self._begin()
        self._take()

    def _on_training_end(self) -> None:
        if self._owns_tests:
            self.tests.on_training_end()

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Also for tests of its own."""
        if self._owns_tests:
            self.tests.update_locals(locals_)

    def _on_step(self) -> bool:
        self._require_every_step()
        go_on = self.tests.on_step() if self._owns_tests else True
        self.steps = self.tests.steps
        self._on_each_step()
        if len(self.tests.history) > self._tests_seen:
            self._tests_seen = len(self.tests.history)
            self._take()
            self._on_test()
        return go_on

    def _require_every_step(self) -> None:
        passed = self.num_timesteps - self._timesteps
        self._timesteps = self.num_timesteps
        if passed != self.training_env.num_envs:
            raise ConfigError(
                f"{type(self).__name__} must see every step of training, but {passed} timesteps "
                "have passed: put it into the list for learn(callback=[...]) itself, not into "
                "EveryNTimesteps or EvalCallback"
            )

    def _take(self) -> None:
        """Hand over the faults that are new since the last time."""
        new = self.tests.faults[self._faults_seen :]
        self._faults_seen += len(new)
        if new:
            self._on_faults(new)

    def _search(self, policy: Policy) -> bool:
        """Look for faults in the states that a policy can visit; were there new ones?"""
        found = self.tests.search(policy)
        self._take()
        return found > 0

    def _begin(self) -> None:
        """Training begins; the first time, or once more."""

    @abstractmethod
    def _on_each_step(self) -> None:
        """After every step of the environments."""

    @abstractmethod
    def _on_faults(self, new: Sequence[Fault]) -> None:
        """New faults, those of resumed records at the beginning."""

    def _on_test(self) -> None:
        """After every test, once its faults were handed over."""
