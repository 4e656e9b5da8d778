"""Runs made for the report: how strategies of fuzzing compare, and unsafe runs to watch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from safetest_gym.deciders import Budget, make_decider
from safetest_gym.errors import SafetestError
from safetest_gym.faults import FaultAnalysis, find_faults
from safetest_gym.fuzzing import FuzzBudget, Fuzzer, Run, Runs, Strategy
from safetest_gym.policies import Policy, load_policy
from safetest_gym.reports.fault_file import FaultRow
from safetest_gym.reports.setting import Setting

__all__ = ["Episode", "FuzzRow", "NamedPolicy", "Watcher"]

_SEARCH = 20_000
_DECIDER_STATES = 1_000_000
_CHUNK = 50
_SECONDS = 15.0
"""A strategy begins no new chunk of runs after this."""


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A policy's file, and what people call it."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class FuzzRow:
    """What a strategy found with a policy.

    Attributes:
        unresolved: unsafe runs where the decider's budget left open who is to blame.
    """

    policy: str
    strategy: str
    runs: int
    failing: int
    goal: int
    bugs: int
    faults: int
    unresolved: int


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """A run that fails.

    Attributes:
        faults: places of decisions that gave safety away.
    """

    name: str
    policy: str
    setting: Setting
    run: Run
    faults: frozenset[int]


class Watcher:
    """Runs the policies of one task, always with the same random numbers.

    Args:
        runs: of each strategy.
        most: episodes that are kept.
    """

    def __init__(self, setting: Setting, runs: int, most: int) -> None:
        self.setting, self.most = setting, most
        self._runs = runs
        self._decider = make_decider("otf", setting.task, budget=Budget(states=_DECIDER_STATES))
        self.rows: list[FuzzRow] = []
        self.episodes: list[Episode] = []
        self.problems: list[str] = []
        self._last: Policy | None = None

    def watch(self, named: NamedPolicy) -> None:
        """Fuzz a policy with each strategy; keep a few of its unsafe runs."""
        try:
            self._last = load_policy(named.path, self.setting.task)
            for strategy in get_args(Strategy):
                self._fuzz(named.name, self._last, strategy)
        except SafetestError as error:
            self.problems.append(f"{named.name} could not be run: {error}")

    def _fuzz(self, name: str, policy: Policy, strategy: Strategy) -> None:
        runs = self._runs_of(self._fuzzer(policy, strategy))
        unsafe, ends = runs.unsafe(), runs.counts()
        self._decider.clear()  # or a strategy would live off the budget of the one before
        found = find_faults(self.setting.task, policy, unsafe, self._decider)
        self.rows.append(
            FuzzRow(
                name,
                strategy,
                len(runs),
                ends["failing"],
                ends["goal"],
                len(found.bugs),
                len(found.faults),
                len(found.unresolved),
            )
        )
        if not any(episode.policy == name for episode in self.episodes):
            self._keep(name, unsafe, found)

    def _runs_of(self, fuzzer: Fuzzer) -> Runs:
        until = time.monotonic() + _SECONDS
        parts: list[Runs] = []
        for first in range(0, self._runs, _CHUNK):
            if parts and time.monotonic() > until:
                break
            parts.append(fuzzer.run(min(_CHUNK, self._runs - first), first=first))
        return Runs.join(self.setting.task, parts)

    def _fuzzer(self, policy: Policy, strategy: Strategy) -> Fuzzer:
        return Fuzzer(
            self.setting.task,
            policy,
            strategy=strategy,
            max_steps=self.setting.step_limit,
            budget=FuzzBudget(search=_SEARCH),
        )

    def _keep(self, name: str, unsafe: Runs, found: FaultAnalysis) -> None:
        """The shortest runs, each with other faults than those before; at least one."""
        known: set[tuple[bytes, int]] = set()
        order = np.argsort(unsafe.lengths, kind="stable").tolist()
        if not any(found.steps):
            del order[1:]
        for place in order:
            if len(self.episodes) == self.most:
                return
            run, steps = unsafe[place], found.steps[place]
            keys = {(run.states[step].tobytes(), int(run.actions[step])) for step in steps}
            if not found.faults or not keys <= known:
                known |= keys
                number = len(self.episodes) + 1
                title = f"{number}: {name}, {len(run)} steps to a failing state"
                self.episodes.append(Episode(title, name, self.setting, run, frozenset(steps)))

    def continue_faults(self, faults: Sequence[FaultRow]) -> None:
        """Where no policy here fails any more: what follows stored faults."""
        task = self.setting.task
        if self.episodes or self._last is None:
            return
        fuzzer = self._fuzzer(self._last, "greedy")
        for fault in faults[: self.most]:
            if fault.action not in task.actions:
                continue
            first, outcome = (
                np.array(values, task.dtype) for values in (fault.state, fault.outcome)
            )
            run: Any = fuzzer.run_from(outcome.reshape(1, -1))[0]
            if run.unsafe:
                states = np.concatenate([first.reshape(1, -1), run.states])
                actions = np.concatenate([[task.actions.index(fault.action)], run.actions])
                whole = Run(run.index, states, actions.astype(np.int64), run.end)
                title = f"fault {fault.number} and what can follow"
                self.episodes.append(Episode(title, "", self.setting, whole, frozenset({0})))
