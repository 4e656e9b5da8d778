"""RepairCallback: the policy in training is repaired where it is known to be wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from safetest_gym.callbacks.beside import repaired_trees
from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.network import LearnerNetwork
from safetest_gym.callbacks.records import Record
from safetest_gym.errors import ConfigError, PolicyError
from safetest_gym.faults import Fault
from safetest_gym.policies import (
    Evaluation,
    MlpPolicy,
    TreeEnsemblePolicy,
    policy_from_sb3,
    save_policy,
)
from safetest_gym.policies.sb3 import SB3Policy
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, fixed_faults
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet

__all__ = ["RepairCallback"]

_DEFAULTS: dict[str, Any] = {"method": ("last-layer", "finetune"), "time_limit": 10.0}
_ATTEMPTS = 4


class RepairCallback(TestFollower):
    """Repairs the network on the faults found so far, and keeps what is really better.

    It works between rollouts, on its own task and with its own random numbers. A repair is
    kept if %Unsafe of the held-out starts falls and %Goal stays within a tolerance; the
    decision in every fault is tested through torch itself, otherwise all is rolled back.
    Logged under ``repair/``.

    Args:
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        every_steps: timesteps between repairs.
        options: `RepairOptions` or their attributes as plain data; by default the last layer
            changes least, and where that is not enough, all layers by gradient steps.
        goal_tolerance: how far %Goal may fall.
        most_faults: the newest that are repaired.
        trees: of an ensemble beside the network, distilled from it and repaired every time,
            on the way to a policy with certificates; training does not see it. 0 for none.

    Attributes:
        ensemble: the safest so far, also in the tests' folder as ``repaired_trees.json``.
    """

    def __init__(
        self,
        *,
        tests: Tests = None,
        every_steps: int = 20_000,
        options: RepairOptions | Mapping[str, Any] | None = None,
        goal_tolerance: float = 0.02,
        most_faults: int = 2000,
        trees: int = 0,
    ) -> None:
        super().__init__(tests)
        if every_steps < 1 or most_faults < 1 or trees < 0:
            raise ConfigError(
                "every_steps and most_faults must be at least 1 and trees not negative, got "
                f"{every_steps}, {most_faults} and {trees}"
            )
        self.every_steps, self.options = every_steps, _options(options)
        self.goal_tolerance, self.most_faults = goal_tolerance, most_faults
        self.trees = trees
        self.history: list[Record] = []
        self.ensemble: TreeEnsemblePolicy | None = None
        self._ensemble_unsafe = 1.0
        self._due = every_steps

    def _begin(self) -> None:
        policy = policy_from_sb3(self.model)
        if not isinstance(policy, MlpPolicy):
            raise PolicyError(f"the network of this model cannot be repaired: {policy.reason}")

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

    def _repair(self) -> Record:
        before = policy_from_sb3(self.model).bind(self.tests.task)
        assert isinstance(before, MlpPolicy)
        faults = self.tests.faults[-self.most_faults :]
        wanted = FaultSet.of(self.tests.task, faults)
        wrong = int((~fixed_faults(before, wanted, self.options.variant)).sum())
        record: Record = {"faults": len(wanted), "wrong_before": wrong, "kept": False}
        if not wrong:
            return record
        old = self.tests.rates(before)
        record |= {"unsafe_before": old.unsafe_rate.value, "goal_before": old.goal_rate.value}
        if self.trees:
            record |= self._repair_beside(before, wanted, old)
        found = self._solve(before, wanted)
        if found is None:
            return record | {"given_up": len(wanted)}
        after, report = found
        new = self.tests.rates(after)
        record |= {
            "given_up": int((~report.fixed).sum()),
            "last_layer": report.method == "last-layer",
            "unsafe_after": new.unsafe_rate.value,
            "goal_after": new.goal_rate.value,
            "sampled_steps": int(old.steps.sum() + new.steps.sum()),
        }
        better = report.fixed.any() and self._is_better(old, new)
        record["kept"] = bool(better and self._put(before, after, wanted))
        return record

    def _solve(self, before: MlpPolicy, wanted: FaultSet) -> tuple[MlpPolicy, RepairReport] | None:
        """The repaired policy; faults that conflict in every method are given up."""
        for _ in range(_ATTEMPTS):
            try:
                return self.options.run(before, wanted)
            except RepairError as error:
                conflict = np.asarray(error.faults, np.int64)
                wanted = _without(wanted, conflict)
                if not len(conflict) or not len(wanted):
                    break
        return None

    def _repair_beside(self, before: MlpPolicy, wanted: FaultSet, old: Evaluation) -> Record:
        """Distil and repair an ensemble; keep the safest whose %Goal is tolerable."""
        found, left = repaired_trees(before, self.tests.task, wanted, self.options, self.trees)
        if found is None:
            return {"trees_left": left}
        rates = self.tests.rates(found)
        unsafe, goal = rates.unsafe_rate.value, rates.goal_rate.value
        tolerable = goal >= old.goal_rate.value - self.goal_tolerance
        if tolerable and (self.ensemble is None or unsafe <= self._ensemble_unsafe):
            self.ensemble, self._ensemble_unsafe = found, unsafe
            if self.tests.folder is not None:
                save_policy(found, self.tests.folder / "repaired_trees.json")
        return {"trees_left": left, "trees_unsafe": unsafe, "trees_goal": goal}

    def _is_better(self, old: Evaluation, new: Evaluation) -> bool:
        safer = new.unsafe_rate.value < old.unsafe_rate.value
        return safer and new.goal_rate.value >= old.goal_rate.value - self.goal_tolerance

    def _put(self, before: MlpPolicy, after: MlpPolicy, wanted: FaultSet) -> bool:
        """Change the learner, unless torch decides otherwise than computed."""
        network = LearnerNetwork(self.model)
        network.change(before, after)
        real = SB3Policy(self.model.policy, after.interface, after.scalings)
        variant = self.options.variant
        promised = fixed_faults(after, wanted, variant)
        if (promised & ~fixed_faults(real, wanted, variant)).any():
            network.roll_back()
            return False
        return True


def _options(given: RepairOptions | Mapping[str, Any] | None) -> RepairOptions:
    """Options, also from plain data as YAML gives it."""
    if isinstance(given, RepairOptions):
        return given
    options = {**_DEFAULTS, **(given or {})}
    known = RepairOptions.__slots__
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ConfigError(f"a repair has no {', '.join(unknown)}; it has {', '.join(known)}")
    if isinstance(options["method"], list):
        options["method"] = tuple(options["method"])
    return RepairOptions(**options)


def _without(faults: FaultSet, rows: np.ndarray[Any, np.dtype[np.int64]]) -> FaultSet:
    kept = np.ones(len(faults), np.bool_)
    kept[rows] = False
    return FaultSet(
        states=faults.states[kept],
        actions=faults.actions[kept],
        applicable=faults.applicable[kept],
        safe=faults.safe[kept],
    )
