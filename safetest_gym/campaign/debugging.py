"""The debugging loop ([C] section 4): test, name the faults, repair, until nothing is left."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from safetest_gym.campaign.debugging_config import BUDGETS, DebugConfig, DebugEnd
from safetest_gym.campaign.debugging_ends import why_ended
from safetest_gym.campaign.debugging_log import DebugFolder, Iteration, fingerprint, suffix_for
from safetest_gym.campaign.debugging_steps import Known, Steps
from safetest_gym.campaign.executors import Executor
from safetest_gym.errors import ConfigError
from safetest_gym.faults.store import FaultStore
from safetest_gym.policies import Policy
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import fixed_faults
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.stop import HardStop

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["DebugConfig", "DebugResult", "DebugWatch", "debug_policy"]


class DebugWatch(Protocol):
    """Sees the loop at work."""

    def step(self, number: int, name: str, done: float) -> None:
        """Policy ``number`` is in this step, of which a fraction is done."""

    def iteration(self, row: Iteration) -> None:
        """An iteration has ended and is on disk."""


class _Nobody:
    """Looks away."""

    def step(self, number: int, name: str, done: float) -> None:
        pass

    def iteration(self, row: Iteration) -> None:
        pass


@dataclass(frozen=True, slots=True, eq=False)
class DebugResult:
    """What became of the policy.

    Attributes:
        policy: the newest one.
        iterations: one per policy, the input first.
        end: why the loop stopped, in a word; ``reason`` says it in a sentence.
        starts: sizes of the start sets, and whether they are disjoint.
        file: where the newest policy is, as long as the directory is.
    """

    policy: Policy
    iterations: tuple[Iteration, ...]
    end: DebugEnd
    reason: str
    starts: dict[str, Any]
    file: Path


def debug_policy(
    task: Task,
    policy: Policy,
    *,
    config: DebugConfig | None = None,
    directory: str | Path | None = None,
    watch: DebugWatch | None = None,
    executor: Executor | None = None,
) -> DebugResult:
    """Find faults of ``policy`` and repair them, again and again.

    Every repair starts from the input policy and fixes all faults found so far, so that the
    whole change stays the least one; until the loop settles, see `DebugConfig`.

    Args:
        directory: keeps everything; a loop that was killed goes on from it, and one that ran
            out of budget goes on with a larger one. By default nothing is kept.

    Raises:
        ConfigError: the directory holds another loop, the policy cannot be repaired, or the
            task has no failure condition.
    """
    if task.property.failure is None:
        raise ConfigError(f"{task.name} has no failure condition: nothing to repair")
    settings = config or DebugConfig()
    suffix = suffix_for(policy)
    options = settings.options_for(policy)
    options.require_fit(policy)
    with nullcontext(directory) if directory else tempfile.TemporaryDirectory() as place:
        folder = DebugFolder(Path(place), suffix)
        steps = Steps(task, settings, options, folder, executor)
        return _Loop(task, policy, settings, steps, watch or _Nobody()).run()


class _Loop:
    def __init__(
        self, task: Task, policy: Policy, config: DebugConfig, steps: Steps, watch: DebugWatch
    ) -> None:
        self.task, self.config, self.steps, self.watch = task, config, steps, watch
        self.folder = steps.folder
        self.rows: list[Iteration] = []
        self.ended: tuple[DebugEnd, str] | None = None
        self.head = {
            "task": task.name,
            "digest": task.digest,
            "policy": fingerprint(policy.bind(task)),
            "method": _named(steps.options.method),
            "variant": steps.options.variant,
            "seed": config.test.seed,
            "config": config.as_dict(policy),
            "starts": steps.starts.as_dict(),
        }
        self._resume(policy)

    def _resume(self, policy: Policy) -> None:
        stored = self.folder.read()
        if stored is None:
            self.folder.save_policy(policy, 0)
            self._write()
            return
        for key, value in self.head.items():
            if stored.get(key) != value:
                raise ConfigError(
                    f"{self.folder.path} holds a debugging loop with another {key} "
                    f"({_difference(stored.get(key), value)}); use a new folder"
                )
        self.rows = [Iteration(**row) for row in stored["iterations"]]
        if self.rows and not self.folder.faults.exists():
            raise ConfigError(
                f"{self.folder.faults} is gone: what was found before cannot be repaired; use a "
                "new folder"
            )
        if stored["end"] is not None:
            self.ended = stored["end"], stored["reason"]
        if stored["end"] in BUDGETS and self._out_of_budget() is None:
            self.rows.pop()
            self.ended = None

    def _write(self) -> None:
        end, reason = self.ended or (None, None)
        rows = [row.as_dict() for row in self.rows]
        self.folder.write({**self.head, "iterations": rows, "end": end, "reason": reason})

    def run(self) -> DebugResult:
        with FaultStore(self.folder.faults) as store:
            while self.ended is None:
                row = self._iterate(store)
                self.rows.append(row)
                self._write()
                self.watch.iteration(row)
        end, reason = self.ended
        number = self.rows[-1].number
        return DebugResult(
            self.folder.load_policy(number, self.task),
            tuple(self.rows),
            end,
            reason,
            self.steps.starts.as_dict(),
            self.folder.policy_file(number),
        )

    def _spent(self) -> float:
        return sum(sum(row.seconds.values()) for row in self.rows)

    def _out_of_budget(self) -> tuple[DebugEnd, str] | None:
        """Why there is no further repair, if no budget is left for it."""
        repairs = sum(row.repair is not None for row in self.rows)
        if repairs >= self.config.iterations:
            return "iterations", f"new faults were found after {repairs} repairs, the most allowed"
        if self._spent() >= self.config.seconds or self.steps.stop.over():
            return "seconds", f"{self.config.seconds:.0f} seconds are over"
        return None

    def _iterate(self, store: FaultStore) -> Iteration:
        """Judge and test the newest policy, and repair the input in all faults known by then."""
        steps, number, seconds = self.steps, len(self.rows), dict[str, float]()
        policy = self.folder.load_policy(number, self.task)
        steps.stop = HardStop(self.config.seconds - self._spent())
        with self._timed("evaluation", seconds):
            evaluation, comparison = steps.judge(policy, number)
        with self._timed("test", seconds):
            tested = steps.test(
                policy, number, store, lambda done: self.watch.step(number, "test", done)
            )
        known = steps.known(policy, number, store)
        fixed = fixed_faults(policy, known.faults, steps.options.variant)
        verification = report = None
        if not (known.new or tested.unsafe or tested.cut):
            with self._timed("verification", seconds):
                verification = steps.verify(policy, number, store)
            known = steps.known(policy, number, store)
            fixed = fixed_faults(policy, known.faults, steps.options.variant)
        if known.new or steps.stop.cut:
            self.ended = self._out_of_budget()
        else:
            radius = self.config.test.radius
            self.ended = why_ended(tested, known, fixed, verification, radius)
        if self.ended is None:
            with self._timed("repair", seconds):
                report = self._repaired(known, store, self._settles_on(verification))
        return Iteration(
            number=number,
            unsafe_rate=evaluation.unsafe_rate.value,
            goal_rate=evaluation.goal_rate.value,
            exact=bool(evaluation.exact.all()),
            faults_new=known.new,
            faults_total=len(known.faults),
            faults_open=int((~(fixed if report is None else report.fixed)).sum()),
            unsafe_runs=tested.unsafe,
            unavoidable=tested.unavoidable,
            unresolved=tested.unresolved,
            repair=None if report is None else report.as_dict(),
            verification=verification,
            comparison=comparison.as_dict(self.task),
            seconds={name: round(value, 3) for name, value in seconds.items()},
        )

    def _settles_on(self, verification: dict[str, Any] | None) -> int | None:
        """The policy that gets penalty trees next, if any does: the first that did, or the newest.

        So its penalty trees are made anew with all faults, and never pile up.
        """
        if not self.config.settle or self.steps.options.method not in ("leaves", ("leaves",)):
            return None
        asked = [*(row.verification for row in self.rows), verification]
        found = sum(facts is not None and facts["verdict"] == "UNSAFE" for facts in asked)
        if found < self.config.settle:
            return None
        for row in self.rows:
            if row.repair is not None and row.repair["method"] == "penalty-trees":
                return row.number
        return len(self.rows)

    def _repaired(self, known: Known, store: FaultStore, base: int | None) -> RepairReport | None:
        """What the repair says; None, and the loop has ended, if there cannot be one."""
        try:
            return self.steps.repair(known.faults, len(self.rows) + 1, store, settle_on=base)
        except RepairError as error:
            self.ended = "repair-failed", str(error)
            return None

    @contextmanager
    def _timed(self, name: str, seconds: dict[str, float]) -> Iterator[None]:
        self.watch.step(len(self.rows), name, 0.0)
        begun = time.monotonic()
        yield
        seconds[name] = time.monotonic() - begun


def _named(method: str | tuple[str, ...]) -> str:
    return method if isinstance(method, str) else ", ".join(method)


def _difference(old: Any, new: Any) -> str:
    """What differs between two values of the same place, first difference first."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in new:
            if old.get(key) != new[key]:
                return f"{key}: {_difference(old.get(key), new[key])}"
    return f"{old!r}, not {new!r}"
