"""How good and how safe a policy is: %Goal by sampling, %Unsafe by exhaustion ([C] 6.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import StartError
from safetest_gym.policies.intervals import Rate, wilson
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.runs import ENDS, RunPlan, Runs, sample_runs
from safetest_gym.whole_numbers import require_int

if TYPE_CHECKING:
    from safetest_gym.campaign.executors import Executor
    from safetest_gym.task import Task

__all__ = ["Evaluation", "EvaluationConfig", "evaluate", "start_states"]

_PART = 64
"""Starts of one job of an executor."""

_GOAL, _FAILING = ENDS.index("goal"), ENDS.index("failing")


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationConfig:
    """Budgets, seed and threads of an evaluation.

    Attributes:
        step_limit: steps after which a sampled run is stopped.
        max_states: states to exhaust, over all starts together; 0 only samples.
        threads: for sampling; None takes all processors. Results do not depend on it.
    """

    step_limit: int = 1000
    max_states: int = 2_000_000
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("step_limit", 1), ("max_states", 0), ("seed", 0)):
            require_int(name, getattr(self, name), least)
        if self.threads is not None:
            require_int("threads", self.threads, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What became of a policy's runs, per start state.

    Attributes:
        starts: start states, shape (n, V).
        counts: sampled runs by how they ended, shape (n, 5) in the order of `ENDS`.
        steps: steps of all sampled runs of a start, shape (n,).
        unsafe: whether a failing state can be (or was) reached, shape (n,).
        arrives: whether the goal can be (or was) reached, shape (n,).
        exact: where ``unsafe`` and ``arrives`` are exact, not only sampled, shape (n,). An
            inexact True of either is still certain, an inexact False is not.
        num_states: states known to be reachable under the policy.
        all_starts: whether these are all start states, not a sample.
    """

    starts: NDArray[Any]
    counts: NDArray[np.int64]
    steps: NDArray[np.int64]
    unsafe: NDArray[np.bool_]
    arrives: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    num_states: int
    all_starts: bool = False

    @property
    def goal_rate(self) -> Rate:
        """%Goal: fraction of sampled runs that reach the goal."""
        return self.end_rate("goal")

    @property
    def failure_rate(self) -> Rate:
        """Fraction of sampled runs that fail."""
        return self.end_rate("failing")

    @property
    def unsafe_rate(self) -> Rate:
        """%Unsafe: fraction of starts from which a run of the policy can fail.

        A lower bound where not all starts are `exact`.
        """
        return self._start_rate(self.unsafe)

    @property
    def never_arrives_rate(self) -> Rate:
        """Fraction of starts from which no run of the policy can reach the goal.

        An upper bound where not all starts are `exact`.
        """
        return self._start_rate(~self.arrives)

    @property
    def mean_steps(self) -> float:
        """Mean length of a sampled run."""
        return float(self.steps.sum() / self.counts.sum())

    def end_rate(self, end: str) -> Rate:
        """Fraction of sampled runs with this end (see `ENDS`).

        Runs from one start are alike, so the interval counts starts, not runs, as
        independent trials unless these are all starts there are.
        """
        runs = int(self.counts.sum())
        fraction = float(self.counts[:, ENDS.index(end)].sum() / runs)
        chance_in_runs_only = self.all_starts or len(self.starts) == 1
        return wilson(fraction, runs if chance_in_runs_only else len(self.starts))

    def _start_rate(self, holds: NDArray[np.bool_]) -> Rate:
        """Fraction of starts; without interval where nothing was left to chance."""
        fraction = float(holds.mean())
        if self.all_starts and self.exact.all():
            return Rate(fraction, fraction, fraction)
        return wilson(fraction, len(holds))

    def describe(self) -> str:
        """A table for people."""
        runs = int(self.counts.sum())
        lines = [f"{runs} runs from {len(self.starts)} starts, {self.mean_steps:.1f} steps each"]
        lines += [f"  {end:<20} {self.end_rate(end)}" for end in ENDS]
        lines.append(f"  {'starts unsafe':<20} {self.unsafe_rate}, {self._how()}")
        never = "starts never at goal" if self.exact.all() else "not seen at goal"
        lines.append(f"  {never:<20} {self.never_arrives_rate}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The same for machines: fractions, each with the ends of its interval."""
        return {
            "starts": len(self.starts),
            "all_starts": self.all_starts,
            "runs": int(self.counts.sum()),
            "mean_steps": self.mean_steps,
            "ends": {end: self.end_rate(end).as_json() for end in ENDS},
            "unsafe": self.unsafe_rate.as_json(),
            "never_arrives": self.never_arrives_rate.as_json(),
            "exact_starts": int(self.exact.sum()),
            "states_exhausted": self.num_states,
        }

    def _how(self) -> str:
        exact = int(self.exact.sum())
        if exact == len(self.exact):
            return f"exact ({self.num_states} states exhausted)"
        if exact == 0:
            return "at least: too many states to exhaust, sampled only"
        return f"at least: {exact} starts exhausted, {len(self.exact) - exact} sampled only"


def evaluate(
    policy: Policy,
    task: Task,
    starts: int | NDArray[Any] = 1000,
    runs_per_start: int = 100,
    *,
    config: EvaluationConfig | None = None,
    executor: Executor | None = None,
) -> Evaluation:
    """Evaluate ``policy`` on ``task``.

    Args:
        policy: any policy; it is bound to the task here.
        starts: start states, shape (n, V), or how many to draw from the task's; if it has
            no more than that, all of them are taken.
        runs_per_start: sampled runs from each start, for %Goal.
        executor: samples; by default threads of this process do. Results are the same.

    Raises:
        ActionError: the policy has no applicable action in a state that a run reaches.
    """
    from safetest_gym.policies.reachable import Reachable

    options = config or EvaluationConfig()
    require_int("runs_per_start", runs_per_start, 1)
    bound = policy.bind(task)
    states = start_states(task, starts, options.seed)
    packed = task.engine.pack(states)
    plan = RunPlan(
        runs=runs_per_start,
        step_limit=options.step_limit,
        seed=options.seed,
        threads=options.threads,
    )
    runs = _sample(_SampleWork(bound, task, packed, plan), executor)
    unsafe, arrives = runs.counts[:, _FAILING] > 0, runs.counts[:, _GOAL] > 0
    exact = np.zeros(len(packed), dtype=np.bool_)
    graph = Reachable(task, bound)
    if options.max_states:
        graph.add_starts(packed, options.max_states)
        exact[: graph.complete] = True
        entered = np.array(graph.numbers, dtype=np.int64)
        unsafe[: len(entered)] |= graph.can_reach(_FAILING)[entered]
        arrives[: len(entered)] |= graph.can_reach(_GOAL)[entered]
    whole = isinstance(starts, int | np.integer) and task.initial.count() == len(states)
    return Evaluation(
        states, runs.counts, runs.steps, unsafe, arrives, exact, graph.num_states, whole
    )


@dataclass(frozen=True, slots=True)
class _SampleWork:
    """Runs from some of the starts."""

    policy: Policy
    task: Task
    starts: NDArray[np.int64]
    plan: RunPlan

    def open(self) -> Callable[[range], Runs]:
        return self._run

    def _run(self, part: range) -> Runs:
        return sample_runs(self.policy, self.task, self.starts, self.plan, part)


def _sample(work: _SampleWork, executor: Executor | None) -> Runs:
    everything = range(len(work.starts))
    if executor is None or executor.workers == 1:
        return work.open()(everything)
    work = replace(work, plan=replace(work.plan, threads=1))
    parts = [everything[first : first + _PART] for first in everything[::_PART]]
    done = list(executor.map(work, parts))
    counts = np.concatenate([runs.counts for runs in done])
    return Runs(counts, np.concatenate([runs.steps for runs in done]))


def start_states(task: Task, starts: int | NDArray[Any], seed: int) -> NDArray[Any]:
    """The start states meant: those given, all of the task's, or a sample."""
    if np.ndim(starts):
        given = np.asarray(starts)
        if given.ndim != 2 or not len(given):
            raise StartError(f"start states must have shape (n, variables), got {given.shape}")
        return given
    require_int("starts", starts, 1)
    number = int(starts)
    count = task.initial.count()
    if count is not None and 0 < count <= number:
        return task.initial.enumerate(number)
    return task.initial.sample(number, np.random.default_rng(seed))
