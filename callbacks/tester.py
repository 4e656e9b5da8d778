"""One safety test of one policy: rates on held-out starts, fuzzing, faults."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.campaign.known_good import RUNS, visited_on
from safetest_gym.deciders import Budget, make_decider
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault, FaultAnalysis, find_faults, reachable_faults
from safetest_gym.fuzzing import End, Fuzzer, Runs, Strategy
from safetest_gym.policies import Evaluation, EvaluationConfig, Policy, evaluate
from safetest_gym.repair.requests import KeepSet
from safetest_gym.task import Task

__all__ = ["SafetyPlan", "SafetyResult", "SafetyTester", "as_plan"]

_CHUNK = 128
"""Runs between two looks at the clock."""

_LEAST = 0.2
"""Seconds that fuzzing and fault analysis have in any case."""

_KEEP_PENALTY = 1.0
"""What giving up a decision to keep may cost, in units of change."""

_BACK = 3
"""So many states up to a fault or a cycle count as shortly before it."""

State = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class SafetyPlan:
    """What a safety test does, how long, and what follows from it; plain data.

    Attributes:
        runs: fuzzing runs of a test, fewer if time is up.
        strategy: of the fuzzer, with ``lookahead`` (its default unless given) and ``max_steps``.
        held_out: start states kept for rates; fuzzing uses others where there are any.
        runs_per_start: sampled runs from each of them, for %Goal.
        max_states: states exhausted for %Unsafe; 0 only samples.
        exhaust: so many of the states that the policy can visit from the fuzzing's starts are
            searched for faults that no run met; 0 for none.
        keep: so many safe decisions on runs to the goal are protected by repairs, at a price;
            0 for none, and then a change for a few faults can move all others.
        decider: name of the decider, ``budget`` its limits as plain data.
        share: of all time that tests may take; None for no limit, which makes what is found
            depend on nothing but seeds.
        goal_tolerance: how far the best safe model's %Goal may be below the best seen.
        stop_unsafe: training stops when %Unsafe of held-out starts is not above this ...
        stop_goal: ... and %Goal not below that.
        fault_map: two variables for TensorBoard's map of faults; None for those that vary
            most over the faults.
    """

    runs: int = 512
    strategy: Strategy = "uniform"
    lookahead: float | None = None
    max_steps: int = 1000
    held_out: int = 200
    runs_per_start: int = 5
    max_states: int = 100_000
    exhaust: int = 20_000
    keep: int = 200
    decider: str = "otf"
    budget: Mapping[str, Any] | None = None
    share: float | None = 0.1
    goal_tolerance: float = 0.02
    stop_unsafe: float | None = None
    stop_goal: float = 0.0
    fault_map: tuple[str, str] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("runs", "max_steps", "held_out", "runs_per_start"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.keep < 0:
            raise ConfigError(f"keep must not be negative, got {self.keep}")
        if self.share is not None and not 0 < self.share < 1:
            raise ConfigError(f"share must be between 0 and 1 or None, got {self.share}")


def as_plan(given: SafetyPlan | Mapping[str, Any] | None) -> SafetyPlan:
    """A plan, also from plain data as YAML gives it."""
    if given is None or isinstance(given, SafetyPlan):
        return given or SafetyPlan()
    known = SafetyPlan.__slots__
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ConfigError(f"a plan has no {', '.join(unknown)}; it has {', '.join(known)}")
    options = dict(given)
    if options.get("fault_map") is not None:
        options["fault_map"] = tuple(options["fault_map"])
    return SafetyPlan(**options)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SafetyResult:
    """What one test found.

    Attributes:
        unsafe_run_rate: fuzzing runs that fail.
        unsafe_start_rate: held-out starts from which the policy can fail.
        goal_rate: sampled runs from held-out starts that reach the goal.
        bugs: different safe states seen from which the policy can fail.
        decider_unknown: questions that the decider's budget left open.
        before_failures: states up to the faults of unsafe runs, (n, V).
        before_cycles: states where runs began to go in circles, (n, V).
        seconds_of_rates: what the part cost that no limit of time cuts short.
    """

    runs: int
    unsafe_run_rate: float
    unsafe_start_rate: float
    goal_rate: float
    bugs: int
    faults: tuple[Fault, ...]
    decider_unknown: int
    before_failures: State
    before_cycles: State
    seconds_of_rates: float


class SafetyTester:
    """Tests one policy after the other; what the decider finds out is kept.

    Args:
        task: used by nobody else.
    """

    def __init__(self, task: Task, plan: SafetyPlan) -> None:
        self.task, self.plan = task, plan
        budget = Budget(**plan.budget) if plan.budget else None
        self.decider = make_decider(plan.decider, task, budget=budget)
        self.held_out = _held_out(task, plan)
        self._held_out_keys = {row.tobytes() for row in self.held_out}
        self._rates = EvaluationConfig(
            step_limit=plan.max_steps, max_states=plan.max_states, seed=plan.seed, threads=1
        )

    def test(self, policy: Policy, number: int, seconds: float | None) -> SafetyResult:
        """Test number ``number``; with ``seconds`` it stops early, but does not do nothing."""
        begun = time.monotonic()
        unknown = self.decider.statistics.unknown
        rates = self.rates(policy)
        judged = time.monotonic()
        end = None if seconds is None else max(begun + seconds, judged + _LEAST)
        self.decider.deadline = end
        try:
            found = self._search(policy, number, end)
        finally:
            self.decider.deadline = None
        return SafetyResult(
            runs=found.runs,
            unsafe_run_rate=found.unsafe / found.runs,
            unsafe_start_rate=rates.unsafe_rate.value,
            goal_rate=rates.goal_rate.value,
            bugs=len(found.bugs),
            faults=tuple(found.faults.values()),
            decider_unknown=self.decider.statistics.unknown - unknown,
            before_failures=found.states(found.before_failures),
            before_cycles=found.states(found.before_cycles),
            seconds_of_rates=judged - begun,
        )

    def _search(self, policy: Policy, number: int, end: float | None) -> _Findings:
        """Unsafe runs and faults, until the moment ``end``."""
        plan, found = self.plan, _Findings(self.task)
        fuzzer = Fuzzer(
            self.task,
            policy,
            strategy=plan.strategy,
            lookahead=plan.lookahead,
            max_steps=plan.max_steps,
            seed=plan.seed,
        )
        starts = self._starts(number)
        first = number * plan.runs
        for at in range(0, len(starts), _CHUNK):
            if at and _is_past(end):
                break
            runs = fuzzer.run_from(starts[at : at + _CHUNK], first=first + at)
            found.add(runs, find_faults(self.task, policy, runs.unsafe(), self.decider))
        if plan.exhaust and not _is_past(end):
            found.add_faults(self._visited(policy, starts))
        return found

    def visited(self, policy: Policy, number: int, seconds: float | None) -> tuple[Fault, ...]:
        """Faults in the states that the policy can visit from the starts of a test."""
        if not self.plan.exhaust:
            return ()
        self.decider.deadline = None if seconds is None else time.monotonic() + seconds
        try:
            return self._visited(policy, self._starts(number))
        finally:
            self.decider.deadline = None

    def known_good(self, policy: Policy, number: int, seconds: float | None) -> KeepSet | None:
        """Safe decisions on runs to the goal from the starts of a test; None for none."""
        plan, most = self.plan, self.plan.keep
        if not most:
            return None
        fuzzer = Fuzzer(self.task, policy, max_steps=plan.max_steps, seed=plan.seed)
        runs = fuzzer.run_from(self._starts(number)[:RUNS], first=number * plan.runs)
        self.decider.deadline = None if seconds is None else time.monotonic() + seconds
        try:
            visited = visited_on(runs, self.task, self.decider, most=2 * most, seed=plan.seed)
        finally:
            self.decider.deadline = None
        return visited.keep(most, _KEEP_PENALTY)

    def _visited(self, policy: Policy, starts: State) -> tuple[Fault, ...]:
        most = self.plan.exhaust
        return reachable_faults(self.task, policy, starts, self.decider, max_states=most)

    def rates(self, policy: Policy) -> Evaluation:
        """%Unsafe and %Goal of a policy from the held-out starts."""
        runs = self.plan.runs_per_start
        return evaluate(policy, self.task, self.held_out, runs, config=self._rates)

    def _starts(self, number: int) -> State:
        """Start states of a test, not held-out ones where there are others."""
        rng = np.random.default_rng([self.plan.seed, 1, number])
        drawn = self.task.initial.sample(2 * self.plan.runs, rng)
        others = np.array([row.tobytes() not in self._held_out_keys for row in drawn])
        chosen = drawn[others] if others.any() else drawn
        while len(chosen) < self.plan.runs:
            chosen = np.concatenate([chosen, chosen])
        return chosen[: self.plan.runs]


def _is_past(moment: float | None) -> bool:
    return moment is not None and time.monotonic() >= moment


def _held_out(task: Task, plan: SafetyPlan) -> State:
    """A fixed sample; of few start states, all."""
    count = task.initial.count()
    if count is not None and count <= plan.held_out:
        return task.initial.enumerate(plan.held_out)
    return task.initial.sample(plan.held_out, np.random.default_rng([plan.seed, 0]))


class _Findings:
    """What the chunks of a test found, each thing once."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.runs = self.unsafe = 0
        self.bugs: set[bytes] = set()
        self.faults: dict[tuple[bytes, int], Fault] = {}
        self.before_failures: dict[bytes, None] = {}
        self.before_cycles: dict[bytes, None] = {}

    def add(self, runs: Runs, analysis: FaultAnalysis) -> None:
        self.runs += len(runs)
        self.unsafe += runs.count(End.FAILING)
        self.bugs.update(row.tobytes() for row in analysis.bugs)
        self.add_faults(analysis.faults)
        unsafe = runs.unsafe()
        for run, steps in enumerate(analysis.steps):
            for step in steps:
                self._note(self.before_failures, unsafe, run, step)
        for run in np.flatnonzero(runs.ends == End.CYCLE).tolist():
            self._note(self.before_cycles, runs, run, int(runs.lengths[run]))

    def add_faults(self, faults: Sequence[Fault]) -> None:
        """The state of a fault is a bug, too."""
        for fault in faults:
            key = fault.state.tobytes()
            self.bugs.add(key)
            self.faults.setdefault((key, fault.action), fault)

    def _note(self, where: dict[bytes, None], runs: Runs, run: int, step: int) -> None:
        first = int(runs.offsets[run])
        rows = runs.words[first + max(0, step - _BACK + 1) : first + step + 1]
        states = self._task.engine.unpack(rows)
        running = states[self._task.classify(states) == 0]
        where.update((row.tobytes(), None) for row in running)

    def states(self, keys: dict[bytes, None]) -> State:
        """Vectors again."""
        kind, width = self._task.dtype, self._task.num_variables
        return np.frombuffer(b"".join(keys), kind).reshape(-1, width).copy()
