"""The whole test of a policy in pieces that workers can share and that can be resumed.

A chunk is a fixed range of run numbers; what is found in it depends on the plan alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from safetest_gym.campaign.executors import Executor, SerialExecutor
from safetest_gym.errors import ConfigError
from safetest_gym.faults.analysis import Direction, find_faults
from safetest_gym.faults.fault import Fault
from safetest_gym.faults.store import Chunk, FaultStore
from safetest_gym.fuzzing import FuzzBudget, Fuzzer, Strategy
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["CHUNK", "ChunkResult", "FaultTest", "TestPlan"]

CHUNK = 256
"""Runs per chunk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPlan:
    """What to run and how to analyse it; together with task and policy it decides the result.

    Attributes:
        search: states of one continuation search, see `FuzzBudget`.
        decider_states: states that the decider may know per chunk; what is then still open
            is reported as unresolved.
    """

    __test__ = False  # not for pytest

    runs: int = 1_000
    strategy: Strategy = "greedy"
    lookahead: float = math.inf
    max_steps: int = 10_000
    search: int = 100_000
    seed: int = 0
    decider: str = "otf"
    decider_states: int = 1_000_000
    radius: float = math.inf
    direction: Direction = "backward"
    first_only: bool = False

    def __post_init__(self) -> None:
        if self.runs < 0 or self.decider_states < 1:
            raise ConfigError("runs must not be negative, decider_states must be positive")

    @property
    def chunks(self) -> int:
        """How many pieces the runs make."""
        return -(-self.runs // CHUNK)

    def size(self, number: int) -> int:
        """Runs of a chunk."""
        return min(CHUNK, self.runs - number * CHUNK)

    def job(self, task: Task, policy_version: str) -> str:
        """Name of the work for the store; a plan with more runs goes on where this one ended."""
        plan = {key: str(value) for key, value in asdict(self).items() if key != "runs"}
        text = json.dumps([task.digest, policy_version, plan], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class ChunkResult:
    """What a chunk gave.

    Attributes:
        ends: runs by how they end.
        bugs: one code per bug state, equal for equal states.
        seconds: processor time of fuzzing and of fault analysis.
        resumed: was it read from the store?
    """

    number: int
    ends: dict[str, int]
    steps: int
    faults: tuple[Fault, ...]
    bugs: frozenset[str]
    unavoidable: int
    unresolved: int
    tested: int
    seconds: tuple[float, float]
    resumed: bool = False

    def as_dict(self, task: Task) -> dict[str, Any]:
        """Plain data for the store."""
        return {
            "runs": sum(self.ends.values()),
            "ends": self.ends,
            "steps": self.steps,
            "faults": [fault.as_dict(task) for fault in self.faults],
            "bugs": sorted(self.bugs),
            "unavoidable": self.unavoidable,
            "unresolved": self.unresolved,
            "tested": self.tested,
            "seconds": list(self.seconds),
        }

    @classmethod
    def from_dict(cls, number: int, data: dict[str, Any], task: Task) -> ChunkResult:
        """The inverse of `as_dict`."""
        return cls(
            number,
            data["ends"],
            data["steps"],
            tuple(Fault.from_dict(fault, task) for fault in data["faults"]),
            frozenset(data["bugs"]),
            data["unavoidable"],
            data["unresolved"],
            data["tested"],
            (data["seconds"][0], data["seconds"][1]),
            resumed=True,
        )


class FaultTest:
    """Fuzzing and fault analysis of a policy, chunk by chunk.

    Args:
        store: keeps faults and progress; chunks that it has are not run again.
        version: of the policy, for the store.
        executor: does the chunks; results do not depend on it. By default, this process.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        plan: TestPlan | None = None,
        *,
        store: FaultStore | None = None,
        version: str = "",
        executor: Executor | None = None,
    ) -> None:
        self.task, self.policy = task, policy
        self.plan = plan or TestPlan()
        self.store, self.version = store, version
        self.executor = executor or SerialExecutor()

    def __iter__(self) -> Iterator[ChunkResult]:
        """Results in order; each is in the store before it is given."""
        job = self.plan.job(self.task, self.version)
        kept = {} if self.store is None else self.store.chunks(job)
        done = {
            number: data
            for number, data in kept.items()
            if number < self.plan.chunks and data["runs"] == self.plan.size(number)
        }
        missing = [number for number in range(self.plan.chunks) if number not in done]
        work = _ChunkWork(self.task, self.policy, self.plan)
        fresh = self.executor.map(work, missing)
        for number in range(self.plan.chunks):
            if number in done:
                yield ChunkResult.from_dict(number, done[number], self.task)
                continue
            result = next(fresh)
            if self.store is not None:
                chunk = Chunk(job, number, result.as_dict(self.task))
                self.store.add(self.task, result.faults, policy=self.version, chunk=chunk)
            yield result


@dataclass(frozen=True, slots=True)
class _ChunkWork:
    task: Task
    policy: Policy
    plan: TestPlan

    def open(self) -> Callable[[int], ChunkResult]:
        return _Worker(self.task, self.policy, self.plan).run


class _Worker:
    """One worker's fuzzer and decider, with their caches."""

    def __init__(self, task: Task, policy: Policy, plan: TestPlan) -> None:
        from safetest_gym.deciders import Budget, make_decider

        self.task, self.policy, self.plan = task, policy, plan
        self.fuzzer = Fuzzer(
            task,
            policy,
            strategy=plan.strategy,
            lookahead=plan.lookahead,
            max_steps=plan.max_steps,
            budget=FuzzBudget(search=plan.search),
            seed=plan.seed,
        )
        finite = policy if plan.radius != math.inf else None
        self.decider = make_decider(
            plan.decider,
            task,
            policy=finite,
            radius=plan.radius,
            budget=Budget(states=plan.decider_states),
        )

    def run(self, number: int) -> ChunkResult:
        """Fuzz and analyse one chunk."""
        plan = self.plan
        begun = time.process_time()
        runs = self.fuzzer.run(plan.size(number), first=number * CHUNK)
        fuzzed = time.process_time()
        self.decider.clear()  # so that what a budget leaves open depends on the chunk alone
        found = find_faults(
            self.task,
            self.policy,
            runs.unsafe(),
            self.decider,
            direction=plan.direction,
            radius=plan.radius,
            first_only=plan.first_only,
        )
        return ChunkResult(
            number,
            runs.counts(),
            int(runs.lengths.sum()),
            found.faults,
            frozenset(words.tobytes().hex() for words in self.task.engine.pack(found.bugs)),
            len(found.unavoidable),
            len(found.unresolved),
            found.tested,
            (fuzzed - begun, time.process_time() - fuzzed),
        )
