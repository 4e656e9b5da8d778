"""What a debugging loop does with one policy: judge, test, verify, repair."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.campaign.debugging_config import DebugConfig
from safetest_gym.campaign.debugging_log import DebugFolder, fingerprint
from safetest_gym.campaign.debugging_starts import split_starts, starting_from
from safetest_gym.campaign.executors import Executor
from safetest_gym.campaign.known_good import Visited, visited_by
from safetest_gym.campaign.pipeline import FaultTest
from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault, find_faults, reachable_faults
from safetest_gym.faults.store import Added, FaultStore
from safetest_gym.fuzzing.runs import End, Run
from safetest_gym.policies import Evaluation, Policy, evaluate
from safetest_gym.repair.comparison import Comparison, compare_policies
from safetest_gym.repair.repairing import RepairOptions, fixed_faults
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet
from safetest_gym.repair.stop import HardStop

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.task import Task

__all__ = ["Known", "Steps", "Tested", "version_of"]

_MORE_RUNS = 10_000
"""Unsafe runs of one verification besides the first, so that few verifications are needed."""

_WAVES, _STATES_BEHIND = 100, 1_000_000
"""How often settling looks for more faults from the unsafe starts, and in how many states."""


@dataclass(slots=True)
class Tested:
    """Sums over the runs of a policy's test, and whether the clock ended it."""

    runs: int = 0
    unsafe: int = 0
    unavoidable: int = 0
    unresolved: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """All faults of the store, how each reads, and how many are new with one policy."""

    faults: FaultSet
    texts: Callable[[int], str]
    new: int


class Steps:
    """The steps of a loop on one task, from fixed start states.

    Attributes:
        stop: what of a test or verification is not done by then is left out.
    """

    def __init__(
        self,
        task: Task,
        config: DebugConfig,
        options: RepairOptions,
        folder: DebugFolder,
        executor: Executor | None,
    ) -> None:
        self.task, self.config, self.options, self.folder = task, config, options, folder
        self.executor = executor
        self.starts = split_starts(
            task, config.debugging_starts, config.evaluation_starts, config.test.seed
        )
        self._debugging = starting_from(task, self.starts.debugging)
        self.stop = HardStop()
        test = config.test
        # One for all policies: what it finds out does not depend on them.
        self._decider = make_decider(test.decider, task, budget=Budget(states=test.decider_states))
        self._input: tuple[Policy, Evaluation] | None = None
        self._visited: Visited | None = None
        self._unsafe: NDArray[Any] | None = None

    @property
    def input(self) -> Policy:
        """The input policy."""
        return self._first()[0]

    def _first(self) -> tuple[Policy, Evaluation]:
        if self._input is None:
            policy = self.folder.load_policy(0, self.task)
            self._input = policy, self._evaluated(policy)
        return self._input

    def judge(self, policy: Policy, number: int) -> tuple[Evaluation, Comparison]:
        """%Unsafe and %Goal, and the input policy beside this one."""
        first, before = self._first()
        after = before if number == 0 else self._evaluated(policy)
        return after, compare_policies(self.task, (first, policy), (before, after))

    def _evaluated(self, policy: Policy) -> Evaluation:
        starts, config = self.starts.evaluation, self.config
        chosen = starts if self.starts.disjoint else len(starts)
        return evaluate(
            policy,
            self.task,
            chosen,
            config.runs_per_start,
            config=config.evaluation,
            executor=self.executor,
        )

    def test(
        self, policy: Policy, number: int, store: FaultStore, show: Callable[[float], None]
    ) -> Tested:
        """Fuzzing and fault analysis from the debugging starts; shows the fraction done."""
        plan = replace(self.config.test, seed=self.config.test.seed + number)
        test = FaultTest(
            self._debugging,
            policy,
            plan,
            store=store,
            version=version_of(policy, number),
            executor=self.executor,
        )
        found = Tested()
        for chunk in test:
            found.runs += sum(chunk.ends.values())
            found.unsafe += chunk.ends["failing"]
            found.unavoidable += chunk.unavoidable
            found.unresolved += chunk.unresolved
            show(found.runs / plan.runs)
            if found.runs < plan.runs and self.stop.over():
                break
        if not self.stop.over():
            self._exhaust(policy, number, store)
        found.cut = self.stop.cut
        return found

    def _exhaust(self, policy: Policy, number: int, store: FaultStore) -> None:
        """Faults that runs did not meet, in the states that the policy can visit."""
        most = self.config.exhaust
        if not most or self.config.test.radius != math.inf:
            return
        with self._deciding() as decider:
            faults = reachable_faults(
                self.task, policy, self.starts.debugging, decider, max_states=most
            )
        self._add(store, faults, version_of(policy, number))

    @contextmanager
    def _deciding(self) -> Iterator[Decider]:
        """The decider, with room and until the clock stops it."""
        left = self.stop.left()
        self._decider.deadline = None if math.isinf(left) else time.monotonic() + left
        self._decider.make_room()
        yield self._decider
        self.stop.over()

    def known(self, policy: Policy, number: int, store: FaultStore) -> Known:
        """Every fault found so far."""
        entries = store.faults(self.task)
        version = version_of(policy, number)
        new = sum(entry.history[0].policy == version for entry in entries)
        faults = FaultSet.of(self.task, [entry.fault for entry in entries])
        return Known(faults, lambda row: entries[row].fault.describe(self.task), new)

    def verify(self, policy: Policy, number: int, store: FaultStore) -> dict[str, Any] | None:
        """Ask for a proof; the faults of an unsafe run go into the store."""
        from safetest_gym.verify import verify

        config = self.config
        if config.verify == "none" or self.task.property.failure is None:
            return None
        try:
            found = verify(
                policy,
                self.task,
                method=config.verify,
                budget=self._verify_budget(),
                more=_MORE_RUNS,
            )
        except ConfigError as error:
            if config.verify != "auto":
                raise
            return {"verdict": Verdict.UNKNOWN.name, "reason": str(error)}
        facts: dict[str, Any] = {
            "verdict": found.verdict.name,
            "method": found.method,
            "reason": found.reason,
            "statistics": dict(found.statistics),
        }
        if found.verdict is Verdict.UNKNOWN:
            self.stop.over()
        if found.proof is not None:
            facts["proof"] = self.folder.save_proof(found.proof, number)
        if found.run is not None:
            facts |= self._analysed(policy, number, [found.run.states, *found.more], store)
        return facts

    def _verify_budget(self) -> Budget:
        given, left = self.config.verify_budget, max(self.stop.left(), 1e-3)
        if math.isinf(left):
            return given
        return replace(given, seconds=left if given.seconds is None else min(given.seconds, left))

    def _analysed(
        self, policy: Policy, number: int, paths: Sequence[NDArray[Any]], store: FaultStore
    ) -> dict[str, Any]:
        """Faults on unsafe runs through these states."""
        runs = []
        for states in paths:
            masks = np.asarray(self.task.applicable_many(states[:-1]), np.bool_)
            runs.append(Run(-1, states, policy.actions(states[:-1], masks), End.FAILING))
        with self._deciding() as decider:
            found = find_faults(self.task, policy, runs, decider)
        self._add(store, found.faults, version_of(policy, number))
        self._unsafe = np.array([run.start for run in runs])
        return {
            "runs": len(runs),
            "steps": len(runs[0]),
            "faults": len(found.faults),
            "unresolved": bool(found.unresolved),
            "start": self.task.as_dict(runs[0].start),
        }

    def repair(
        self, faults: FaultSet, number: int, store: FaultStore, *, settle_on: int | None = None
    ) -> RepairReport:
        """Repair the input policy in all these faults; the result is policy ``number``.

        Args:
            settle_on: the policy of this number gets penalty trees instead, where it has these
                faults.
        """
        config, visited = self.config, self._visits()
        if settle_on is not None:
            policy, report = self._settled(settle_on, faults, number, store)
        else:
            keep = visited.keep(config.keep, config.keep_penalty)
            policy, report = self.options.run(self.input, faults, keep)
        self._unsafe = None
        self.folder.save_policy(policy, number)
        saved = self.folder.load_policy(number, self.task)
        store.update(self.task, saved, version_of(saved, number))
        return replace(report, side_effects=visited.changed_by(self.input, saved))

    def _settled(
        self, base: int, faults: FaultSet, number: int, store: FaultStore
    ) -> tuple[Policy, RepairReport]:
        """Policy ``base`` with penalty trees, and a report on all faults.

        A verification shows one fault per start state. Behind its repair and beside it there
        can be more, which are looked for at once.
        """
        variant = self.options.variant
        policy = self.folder.load_policy(base, self.task)
        newest = version_of(self.folder.load_policy(number - 1, self.task), number - 1)
        tries = replace(self.options, method="penalty-trees")
        for _ in range(_WAVES):
            open_ = _wrong(faults, fixed_faults(policy, faults, variant))
            settled, report = tries.run(policy, faults.take(open_))
            if not self._has_more(settled, newest, store):
                break
            faults = FaultSet.of(self.task, [entry.fault for entry in store.faults(self.task)])
        return settled, replace(
            report,
            fixed=fixed_faults(settled, faults, variant),
            safe_now=fixed_faults(settled, faults, "strong"),
            unfixable=open_[report.unfixable],
        )

    def _has_more(self, policy: Policy, version: str, store: FaultStore) -> bool:
        """Has it unknown faults in states behind the unsafe starts? They go into the store."""
        if self._unsafe is None or self.stop.over():
            return False
        with self._deciding() as decider:
            found = reachable_faults(
                self.task, policy, self._unsafe, decider, max_states=_STATES_BEHIND
            )
        return bool(self._add(store, found, version).new)

    def _add(self, store: FaultStore, faults: Sequence[Fault], version: str) -> Added:
        """Store faults; without those whose alternatives were not found when the time ended."""
        if self.stop.cut:
            faults = [fault for fault in faults if fault.alternatives]
        return store.add(self.task, faults, policy=version)

    def _visits(self) -> Visited:
        """States on the input policy's runs, found once."""
        if self._visited is None:
            config = self.config
            self._visited = visited_by(
                self.input,
                self._debugging,
                most=max(config.visited, config.keep),
                decider_states=config.test.decider_states,
                max_steps=config.evaluation.step_limit,
                seed=config.test.seed,
            )
        return self._visited


def _wrong(faults: FaultSet, fixed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """All faults of states in which one is not fixed."""
    _, state = np.unique(faults.states, axis=0, return_inverse=True)
    return np.flatnonzero(np.isin(state, state[~fixed]))


def version_of(policy: Policy, number: int) -> str:
    """A policy's name in the store."""
    return f"{number:03d} {fingerprint(policy)}"
