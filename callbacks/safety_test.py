"""SafetyTestCallback: how safe is the policy now, and which decisions are to blame?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, EventCallback
from stable_baselines3.common.logger import Image, TensorBoardOutputFormat

from safetest_gym.callbacks.learner import check_learner, own_task
from safetest_gym.callbacks.pictures import fault_map, rate_curve
from safetest_gym.callbacks.records import Record, Records
from safetest_gym.callbacks.tester import SafetyPlan, SafetyResult, SafetyTester, as_plan
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.policies import Evaluation, Policy, policy_from_sb3
from safetest_gym.repair.requests import KeepSet
from safetest_gym.task import Task

__all__ = ["SafetyTestCallback"]

_LEAST_SEARCH = 0.25
"""Seconds of a search for faults outside tests, at least."""

_NOT_A_NUMBER = ("stdout", "log", "json", "csv")


class SafetyTestCallback(EventCallback):
    """Tests the policy in training every so many timesteps, and never disturbs it.

    It works on its own copy of the task with its own random numbers. Everything it finds
    goes to the logger under ``safety/`` and, with a folder, into ``safety.jsonl``,
    ``safety.npz``, ``faults.sqlite`` (a `FaultStore`) and ``best_safe_model.zip``: the
    model with the lowest unsafe rate among those whose goal rate is within a tolerance.

    A test that is due waits until its share of the time allows it.

    Args:
        every_steps: timesteps between tests, counted by this callback over all calls of
            ``learn``.
        plan: a `SafetyPlan`, or its attributes as plain data.
        folder: where records go; None to keep them in memory.
        resume: go on with the records in the folder.
        callback_on_new_faults: its ``on_step`` is called when a test finds new faults.
        callback_on_new_best: the same for a new best safe model.

    Attributes:
        task: the copy that is tested.
        latest: what the last test found.
        faults: all faults so far, in the order they were found.
    """

    def __init__(
        self,
        *,
        every_steps: int = 10_000,
        plan: SafetyPlan | Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        callback_on_new_faults: BaseCallback | None = None,
        callback_on_new_best: BaseCallback | None = None,
    ) -> None:
        super().__init__(callback_on_new_faults)
        if every_steps < 1:
            raise ConfigError(f"every_steps must be at least 1, got {every_steps}")
        self.every_steps = every_steps
        self.plan = as_plan(plan)
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.folder = None if folder is None else Path(folder)
        self._resume = resume
        self.latest: SafetyResult | None = None
        self.faults: list[Fault] = []
        self.steps = self._timesteps = 0
        self._due = every_steps
        self._tester: SafetyTester | None = None
        self._before = self._spent = self._began = 0.0

    @property
    def task(self) -> Task:
        """There is one once training has begun."""
        return self._ready.task

    @property
    def history(self) -> list[Record]:
        """One record per test."""
        return self._records.history if self._tester is not None else []

    @property
    def _ready(self) -> SafetyTester:
        if self._tester is None:
            raise ConfigError("there are no tests before training has begun")
        return self._tester

    def init_callback(self, model: BaseAlgorithm) -> None:
        """Also for the children."""
        super().init_callback(model)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(model)

    def _on_training_start(self) -> None:
        check_learner(self.model)
        task = own_task(self.model)
        if self._tester is None:
            self._records = Records(task, self.folder, resume=self._resume)
            self._tester = SafetyTester(task, self.plan)
            self.faults = [entry.fault for entry in self._records.store.faults(task)]
            if self.history:
                self.steps = int(self.history[-1]["steps"])
                self._due = self.steps + self.every_steps
        elif task.digest != self.task.digest:
            raise ConfigError(
                f"these tests are of {self.task.name}, the model now trains on another task; "
                "make a new callback for it"
            )
        super()._on_training_start()
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.on_training_start(self.locals, self.globals)
        self._timesteps = self.model.num_timesteps
        self._began = time.monotonic()

    def _on_training_end(self) -> None:
        now = time.monotonic()
        self._before, self._began = self._before + now - self._began, now

    def _on_step(self) -> bool:
        self.steps += self.model.num_timesteps - self._timesteps
        self._timesteps = self.model.num_timesteps
        if self.steps < self._due:
            return True
        seconds = self._allowance()
        if seconds is not None and seconds < self._least:
            return True
        self._due = (self.steps // self.every_steps + 1) * self.every_steps
        return self._test(seconds)

    @property
    def _least(self) -> float:
        """Allowed seconds below which a test is put off: half of them are for the search."""
        return 2 * self.latest.seconds_of_rates if self.latest is not None else 0.0

    def _elapsed(self) -> float:
        return self._before + time.monotonic() - self._began

    def _allowance(self) -> float | None:
        """Seconds that tests may take now; negative: none yet."""
        if self.plan.share is None:
            return None
        return self.plan.share * self._elapsed() - self._spent

    def rates(self, policy: Policy) -> Evaluation:
        """%Unsafe and %Goal of another policy, from the same held-out starts."""
        return self._ready.rates(policy)

    def search(self, policy: Policy) -> int:
        """Add another policy's faults in the states that it can visit; how many are new.

        Its time counts as that of tests, and it has a little even if they have none left.
        """
        begun = time.monotonic()
        found = self._ready.visited(policy, len(self.history), self._search_seconds())
        version = f"{self.num_timesteps}, changed"
        added = self._records.store.add(self.task, found, policy=version)
        self.faults += [found[place] for place in added.new]
        self._records.store.close()
        self._spent += time.monotonic() - begun
        return len(added.new)

    def known_good(self, policy: Policy) -> KeepSet | None:
        """Safe decisions of another policy on runs to the goal; its time counts as in `search`."""
        begun = time.monotonic()
        found = self._ready.known_good(policy, len(self.history), self._search_seconds())
        self._spent += time.monotonic() - begun
        return found

    def _search_seconds(self) -> float | None:
        """What a search outside tests may take now."""
        allowance = self._allowance()
        return None if allowance is None else max(allowance, _LEAST_SEARCH)

    def test_now(self) -> SafetyResult:
        """Test the policy as it is, whatever is due; for the end of training."""
        _ = self._ready
        self._test(None)
        assert self.latest is not None
        return self.latest

    def _test(self, seconds: float | None) -> bool:
        begun = time.monotonic()
        policy = policy_from_sb3(self.model)
        number = len(self.history)
        result = self._ready.test(policy, number, seconds)
        record: Record = {"test": number, "steps": self.steps, "timesteps": self.num_timesteps}
        record |= self._store(policy, result)
        record["best"] = self._is_best(result)
        if record["best"]:
            self._records.save_best(self.model)
        self.latest = result
        self._draw()
        record["seconds"] = time.monotonic() - begun
        self._spent += record["seconds"]
        record["share"] = self._spent / max(1e-9, self._elapsed())
        self._records.add(record)
        self._records.store.close()  # so that the file is complete without its journal
        self._log(record)
        return self._call_children(record) and not self._should_stop(result)

    def _store(self, policy: Policy, result: SafetyResult) -> Record:
        """Put the faults into the store; what the record says of them and of the rates."""
        store, version = self._records.store, str(self.num_timesteps)
        added = store.add(self.task, result.faults, policy=version)
        self.faults += [result.faults[place] for place in added.new]
        fixed, open_ = store.update(self.task, policy, version)
        return {
            "unsafe_run_rate": result.unsafe_run_rate,
            "unsafe_start_rate": result.unsafe_start_rate,
            "goal_rate": result.goal_rate,
            "runs": result.runs,
            "bugs": result.bugs,
            "faults": len(result.faults),
            "faults_new": len(added.new),
            "faults_reopened": added.reopened,
            "faults_total": fixed + open_,
            "faults_fixed": fixed,
            "decider_unknown": result.decider_unknown,
        }

    def _is_best(self, result: SafetyResult) -> bool:
        goals = [result.goal_rate, *(entry["goal_rate"] for entry in self.history)]
        least = max(goals) - self.plan.goal_tolerance
        if result.goal_rate < least:
            return False
        best = [entry for entry in self.history if entry["best"]]
        if not best or best[-1]["goal_rate"] < least:
            return True
        rates = best[-1]["unsafe_start_rate"], -best[-1]["goal_rate"]
        return (result.unsafe_start_rate, -result.goal_rate) < rates

    def _should_stop(self, result: SafetyResult) -> bool:
        limit = self.plan.stop_unsafe
        if limit is None:
            return False
        return result.unsafe_start_rate <= limit and result.goal_rate >= self.plan.stop_goal

    def _call_children(self, record: Record) -> bool:
        go_on = True
        if record["faults_new"]:
            go_on = self._on_event()
        if record["best"] and self.callback_on_new_best is not None:
            go_on = self.callback_on_new_best.on_step() and go_on
        return go_on

    def _draw(self) -> None:
        """Pictures for TensorBoard; other outputs get none."""
        outputs = self.logger.output_formats
        if not any(isinstance(output, TensorBoardOutputFormat) for output in outputs):
            return
        assert self.latest is not None
        steps = [entry["steps"] for entry in self.history] + [self.steps]
        rates = [entry["unsafe_start_rate"] for entry in self.history]
        pictures = {
            "fault_map": fault_map(self.task, self.faults, self.plan.fault_map),
            "unsafe_rate_over_time": rate_curve(
                steps, [*rates, self.latest.unsafe_start_rate], "unsafe start rate"
            ),
        }
        for name, picture in pictures.items():
            self.logger.record(f"safety/{name}", Image(picture, "HWC"), exclude=_NOT_A_NUMBER)

    def _log(self, record: Record) -> None:
        for name, value in record.items():
            if name not in ("test", "timesteps"):
                self.logger.record(f"safety/{name}", value)
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Also for the child on a new best."""
        super().update_child_locals(locals_)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.update_locals(locals_)
