"""RepairCallback: the policy in training is repaired where it is known to be wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.last_layer import LastLayer
from safetest_gym.errors import ConfigError, PolicyError
from safetest_gym.faults import Fault
from safetest_gym.policies import Evaluation, MlpPolicy, policy_from_sb3
from safetest_gym.policies.sb3 import SB3Policy
from safetest_gym.repair.problem import RepairError, Variant
from safetest_gym.repair.repair import fixed_faults, repair
from safetest_gym.repair.requests import FaultSet

__all__ = ["RepairCallback"]

_ATTEMPTS = 4


class RepairCallback(TestFollower):
    """Repairs the last layer on the faults found so far, and keeps what is really better.

    It works between rollouts, on its own task and with its own random numbers. A repair is
    kept if %Unsafe of the held-out starts falls and %Goal stays within a tolerance; the
    decision in every fault is tested through torch itself, otherwise all is rolled back.
    Logged under ``repair/``.

    Args:
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        every_steps: timesteps between repairs.
        variant: ``strong``: a safe action must win in each fault state; ``weak``: any other.
        goal_tolerance: how far %Goal may fall.
        time_limit: seconds of one repair.
        most_faults: the newest that are repaired.
    """

    def __init__(
        self,
        *,
        tests: Tests = None,
        every_steps: int = 20_000,
        variant: Variant = "strong",
        goal_tolerance: float = 0.02,
        time_limit: float = 10.0,
        most_faults: int = 2000,
    ) -> None:
        super().__init__(tests)
        if every_steps < 1 or most_faults < 1 or not time_limit > 0:
            raise ConfigError("every_steps, most_faults and time_limit must be positive")
        self.every_steps, self.variant = every_steps, variant
        self.goal_tolerance, self.time_limit = goal_tolerance, time_limit
        self.most_faults = most_faults
        self.history: list[dict[str, Any]] = []
        self._due = every_steps

    def _begin(self) -> None:
        policy = policy_from_sb3(self.model)
        if not isinstance(policy, MlpPolicy):
            raise PolicyError(f"the last layer of this model cannot be repaired: {policy.reason}")

    def _on_each_step(self) -> None:
        """Nothing: weights change between rollouts only."""

    def _on_faults(self, new: Sequence[Fault]) -> None:
        """Nothing: they wait in ``tests.faults``."""

    def _on_rollout_start(self) -> None:
        if self.steps < self._due or not self.tests.faults:
            return
        self._due = (self.steps // self.every_steps + 1) * self.every_steps
        begun = time.monotonic()
        record = {"steps": self.steps, **self._repair()}
        record["seconds"] = time.monotonic() - begun
        self.history.append(record)
        for name, value in record.items():
            self.logger.record(f"repair/{name}", float(value))

    def _repair(self) -> dict[str, Any]:
        before = policy_from_sb3(self.model).bind(self.tests.task)
        assert isinstance(before, MlpPolicy)
        faults = self.tests.faults[-self.most_faults :]
        wanted = FaultSet.of(self.tests.task, faults)
        wrong = int((~fixed_faults(before, wanted, self.variant)).sum())
        record: dict[str, Any] = {"faults": len(wanted), "wrong_before": wrong, "kept": False}
        if not wrong:
            return record
        after, repaired = self._solve(before, wanted)
        record["given_up"] = len(wanted) - len(repaired)
        if after is None:
            return record
        old, new = self.tests.rates(before), self.tests.rates(after)
        record |= {
            "unsafe_before": old.unsafe_rate.value,
            "unsafe_after": new.unsafe_rate.value,
            "goal_before": old.goal_rate.value,
            "goal_after": new.goal_rate.value,
            "sampled_steps": int(old.steps.sum() + new.steps.sum()),
        }
        record["kept"] = self._is_better(old, new) and self._put(before, after, repaired)
        return record

    def _solve(self, before: MlpPolicy, wanted: FaultSet) -> tuple[MlpPolicy | None, FaultSet]:
        """The repaired policy, and the faults left after conflicting ones were given up."""
        for _ in range(_ATTEMPTS):
            if not len(wanted):
                break
            try:
                after, _ = repair(
                    before,
                    wanted,
                    method="last-layer",
                    variant=self.variant,
                    time_limit=self.time_limit,
                )
            except RepairError as error:
                conflict = np.asarray(error.faults, np.int64)
                if not len(conflict):
                    break
                wanted = _without(wanted, conflict)
                continue
            return after, wanted
        return None, wanted

    def _is_better(self, old: Evaluation, new: Evaluation) -> bool:
        safer = new.unsafe_rate.value < old.unsafe_rate.value
        return safer and new.goal_rate.value >= old.goal_rate.value - self.goal_tolerance

    def _put(self, before: MlpPolicy, after: MlpPolicy, repaired: FaultSet) -> bool:
        """Change the learner, unless torch decides otherwise than computed."""
        layer = LastLayer(self.model)
        layer.change(before, after)
        real = SB3Policy(self.model.policy, after.interface, after.scalings)
        promised = fixed_faults(after, repaired, self.variant)
        if (promised & ~fixed_faults(real, repaired, self.variant)).any():
            layer.roll_back()
            return False
        return True


def _without(faults: FaultSet, rows: np.ndarray[Any, np.dtype[np.int64]]) -> FaultSet:
    kept = np.ones(len(faults), np.bool_)
    kept[rows] = False
    return FaultSet(
        states=faults.states[kept],
        actions=faults.actions[kept],
        applicable=faults.applicable[kept],
        safe=faults.safe[kept],
    )
