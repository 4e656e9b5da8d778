"""RepairCallback: the policy in training is repaired where it is known to be wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetest_gym.callbacks.beside import repaired_trees
from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.json_lines import JsonLines, Record
from safetest_gym.callbacks.network import LearnerNetwork
from safetest_gym.errors import ConfigError, PolicyError, StoreError
from safetest_gym.faults import Fault
from safetest_gym.policies import (
    Evaluation,
    MlpPolicy,
    TreeEnsemblePolicy,
    load_policy,
    policy_from_sb3,
    save_policy,
)
from safetest_gym.policies.sb3 import SB3Policy
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, fixed_faults
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet, KeepSet
from safetest_gym.replacing import replace_file

__all__ = ["RepairCallback"]

_DEFAULTS: dict[str, Any] = {"method": ("last-layer", "finetune"), "work": 3.0, "gap": 0.25}
_ATTEMPTS = 4
_TREES = "repaired_trees.json"


@dataclass(frozen=True, slots=True)
class _Repaired:
    """A policy, what it was asked to do and how it does."""

    wanted: FaultSet
    policy: MlpPolicy
    report: RepairReport
    rates: Evaluation


class RepairCallback(TestFollower):
    """Repairs the network on the faults found so far, and keeps what is really better.

    It works between rollouts and when training ends, on its own task and with its own random
    numbers. A repair is kept if %Unsafe of the held-out starts falls and %Goal stays within a
    tolerance; the decision in every fault is tested through torch itself, otherwise all is
    rolled back. What was done, and why it was kept or not, goes into ``history`` and, with a
    folder of the tests, into its ``repair.jsonl``; numbers go to the logger under ``repair/``.
    Where the tests go on with records on disk, this callback does so, too.

    Args:
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        every_steps: timesteps between repairs.
        options: `RepairOptions` or their attributes as plain data; by default the last layer
            changes least, and where that is not enough, all layers by gradient steps.
        rounds: a repair whose policy can still fail is tried anew with the faults of that
            policy, so many times at most; the safest counts.
        goal_tolerance: how far %Goal may fall.
        most_faults: the newest that are repaired.
        trees: of an ensemble beside the network, distilled from it and repaired every time,
            on the way to a policy with certificates; training does not see it. 0 for none.

    Attributes:
        history: one record per attempt.
        ensemble: the safest so far, also in the tests' folder as ``repaired_trees.json``.
    """

    def __init__(
        self,
        *,
        tests: Tests = None,
        every_steps: int = 20_000,
        options: RepairOptions | Mapping[str, Any] | None = None,
        rounds: int = 8,
        goal_tolerance: float = 0.02,
        most_faults: int = 2000,
        trees: int = 0,
    ) -> None:
        super().__init__(tests)
        if every_steps < 1 or rounds < 1 or most_faults < 1 or trees < 0:
            raise ConfigError(
                "every_steps, rounds and most_faults must be at least 1 and trees not negative, "
                f"got {every_steps}, {rounds}, {most_faults} and {trees}"
            )
        self.every_steps, self.options = every_steps, _options(options)
        self.goal_tolerance, self.most_faults = goal_tolerance, most_faults
        self.rounds, self.trees = rounds, trees
        self.history: list[Record] = []
        self.ensemble: TreeEnsemblePolicy | None = None
        self._ensemble_unsafe = 1.0
        self._due = every_steps
        self._lines: JsonLines | None = None

    def _begin(self) -> None:
        policy = policy_from_sb3(self.model)
        if not isinstance(policy, MlpPolicy):
            raise PolicyError(f"the network of this model cannot be repaired: {policy.reason}")
        if self.tests.folder is not None and self._lines is None:
            self._lines = JsonLines(self.tests.folder / "repair.jsonl", self.tests.task)
            self._resume(self._lines, self.tests.folder)

    def _resume(self, lines: JsonLines, folder: Path) -> None:
        """Go on with the records in the folder, as the tests do."""
        if lines.path.exists() and not self.tests.history:
            raise StoreError(
                f"{lines.path} is of another training; remove it or use another folder"
            )
        self.history = lines.resumed()
        if not self.history:
            return
        self._due = int(self.history[-1]["steps"]) + self.every_steps
        kept = [record for record in self.history if record.get("trees_kept")]
        if self.trees and kept and (folder / _TREES).exists():
            loaded = load_policy(folder / _TREES, self.tests.task)
            if isinstance(loaded, TreeEnsemblePolicy):
                self.ensemble, self._ensemble_unsafe = loaded, float(kept[-1]["trees_unsafe"])

    def _on_each_step(self) -> None:
        """Nothing: weights change between rollouts only."""

    def _on_faults(self, new: Sequence[Fault]) -> None:
        """Nothing: they wait in ``tests.faults``."""

    def _on_rollout_start(self) -> None:
        if self.steps >= self._due:
            self._due = (self.steps // self.every_steps + 1) * self.every_steps
            self._attempt()

    def _on_training_end(self) -> None:
        """What the last updates broke is repaired, too."""
        self._attempt()
        super()._on_training_end()

    def _attempt(self) -> None:
        begun = time.monotonic()
        before = policy_from_sb3(self.model).bind(self.tests.task)
        assert isinstance(before, MlpPolicy)
        self.tests.search(before)
        if not self.tests.faults:
            return
        record: Record = {"steps": self.tests.steps, "timesteps": self.num_timesteps}
        record |= self._repair(before)
        record["seconds"] = time.monotonic() - begun
        self.history.append(record)
        if self._lines is not None:
            self._lines.add(record)
        for name, value in record.items():
            if name != "timesteps" and not isinstance(value, str):
                self.logger.record(f"repair/{name}", float(value))

    def _repair(self, before: MlpPolicy) -> Record:
        wanted = self._wanted()
        wrong = int((~fixed_faults(before, wanted, self.options.variant)).sum())
        record: Record = {"faults": len(wanted), "wrong_before": wrong, "kept": False}
        if not wrong:
            return record | {"why": "the policy has none of these faults"}
        old = self.tests.rates(before)
        record |= {"unsafe_before": old.unsafe_rate.value, "goal_before": old.goal_rate.value}
        if self.trees:
            record |= self._repair_beside(before, wanted, old)
        best, rounds = self._best_of_rounds(before)
        record["rounds"] = rounds
        if best is None:
            return record | {"given_up": len(wanted), "why": "no method mends any of these faults"}
        record |= _told(best.report, len(best.wanted)) | {
            "faults": len(best.wanted),
            "unsafe_after": best.rates.unsafe_rate.value,
            "goal_after": best.rates.goal_rate.value,
            "sampled_steps": int(old.steps.sum() + best.rates.steps.sum()),
        }
        against = self._objection(best.report, old, best.rates)
        if not against and not self._put(before, best):
            against = "torch decides otherwise than computed"
        return record | {"kept": not against, "why": against or "%Unsafe falls"}

    def _wanted(self) -> FaultSet:
        return FaultSet.of(self.tests.task, self.tests.faults[-self.most_faults :])

    def _best_of_rounds(self, before: MlpPolicy) -> tuple[_Repaired | None, int]:
        """The safest repair, and how many were tried, each on all faults known by then."""
        best: _Repaired | None = None
        keep = self.tests.known_good(before)
        for number in range(1, self.rounds + 1):
            wanted = self._wanted()
            found = self._solve(before, wanted, keep)
            if found is None:
                return best, number
            tried = _Repaired(wanted, *found, self.tests.rates(found[0]))
            if best is None or tried.rates.unsafe_rate.value < best.rates.unsafe_rate.value:
                best = tried
            if not tried.rates.unsafe_rate.value or not self.tests.search(tried.policy):
                return best, number
        return best, self.rounds

    def _solve(
        self, before: MlpPolicy, wanted: FaultSet, keep: KeepSet | None
    ) -> tuple[MlpPolicy, RepairReport] | None:
        """The repaired policy; faults that conflict in every method are given up."""
        for _ in range(_ATTEMPTS):
            try:
                return self.options.run(before, wanted, keep)
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
            return {"trees_left": left, "trees_kept": False}
        seen = self.tests.rates(found)
        unsafe, goal = seen.unsafe_rate.value, seen.goal_rate.value
        tolerable = goal >= old.goal_rate.value - self.goal_tolerance
        kept = tolerable and (self.ensemble is None or unsafe <= self._ensemble_unsafe)
        if kept:
            self.ensemble, self._ensemble_unsafe = found, unsafe
            if self.tests.folder is not None:
                replace_file(self.tests.folder / _TREES, lambda path: save_policy(found, path))
        rates = {"trees_unsafe": unsafe, "trees_goal": goal}
        return {"trees_left": left, **rates, "trees_kept": kept}

    def _objection(self, report: RepairReport, old: Evaluation, new: Evaluation) -> str:
        """Why the network should stay as it is; empty if it should change."""
        if not report.fixed.any():
            return "no fault is fixed"
        if new.unsafe_rate.value >= old.unsafe_rate.value:
            return "%Unsafe does not fall"
        if new.goal_rate.value < old.goal_rate.value - self.goal_tolerance:
            return "%Goal falls too far"
        return ""

    def _put(self, before: MlpPolicy, repaired: _Repaired) -> bool:
        """Change the learner, unless torch decides otherwise than computed."""
        after, wanted = repaired.policy, repaired.wanted
        network = LearnerNetwork(self.model)
        network.change(before, after)
        real = SB3Policy(self.model.policy, after.interface, after.scalings)
        variant = self.options.variant
        promised = fixed_faults(after, wanted, variant)
        if (promised & ~fixed_faults(real, wanted, variant)).any():
            network.roll_back()
            return False
        return True


def _told(report: RepairReport, wanted: int) -> Record:
    """What a record says of a repair; faults that were left out are given up, too."""
    fixed = int(report.fixed.sum())
    return {
        "method": report.method,
        "algorithm": report.algorithm,
        "variant": report.variant,
        "fixed": fixed,
        "given_up": wanted - fixed,
        "objective": report.objective,
        "lower_bound": report.lower_bound,
        "changed": report.changed,
    }


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
