"""Fault analysis: which decisions on a run gave safety away ([J] section 6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.base import PART, require_decider_of
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import ConfigError
from safetest_gym.faults.alternatives import safe_alternatives
from safetest_gym.faults.fault import Fault
from safetest_gym.fuzzing import PolicyGraph, Run, Runs
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Decider", "Direction", "FaultAnalysis", "StateSafety", "find_faults"]

Direction = Literal["backward", "forward"]
Numbers = NDArray[np.int64]

_UNASKED = 255

_DECIDER_STATES = 5_000_000
"""Of the default decider, so that tasks with endless states end."""


class Decider(Protocol):
    """What fault analysis needs of a decider."""

    def decide_many(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """Verdicts of state vectors (n, V)."""
        ...

    def safe_actions(self, state: NDArray[Any]) -> NDArray[np.bool_]:
        """Which actions have safe outcomes only."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FaultAnalysis:
    """What was found on some runs.

    Attributes:
        faults: each (state, action) once, in the order of the runs.
        steps: per run the steps that are faults.
        starts: per run the verdict of its start state.
        unavoidable: indices of unsafe runs without a fault.
        unresolved: indices of runs where a budget left a question open and no fault was found.
        bugs: safe states on unsafe runs: the policy can fail from them ([J] Def. 2).
        tested: states that were decided.
    """

    faults: tuple[Fault, ...]
    steps: tuple[tuple[int, ...], ...]
    starts: tuple[Verdict, ...]
    unavoidable: tuple[int, ...]
    unresolved: tuple[int, ...]
    bugs: NDArray[Any]
    tested: int


class StateSafety:
    """Verdicts by number of a policy's graph; every state is decided once."""

    def __init__(self, graph: PolicyGraph, decider: Decider) -> None:
        self.graph = graph
        self.decider = decider
        self.tested = 0
        self._verdict = np.empty(0, np.uint8)
        self._make_room: Callable[[], None] = getattr(decider, "make_room", lambda: None)

    def _fit(self) -> None:
        if len(self._verdict) < self.graph.capacity:
            grown = np.full(self.graph.capacity, _UNASKED, np.uint8)
            grown[: len(self._verdict)] = self._verdict
            self._verdict = grown

    def ask(self, numbers: Numbers) -> NDArray[np.uint8]:
        """Verdicts; states not decided before are, in the order given."""
        self._fit()
        open_ = numbers[self._verdict[numbers] == _UNASKED]
        if len(open_):
            distinct, places = np.unique(open_, return_index=True)
            wanted = distinct[np.argsort(places)]
            for first in range(0, len(wanted), PART):
                part = wanted[first : first + PART]
                self._make_room()
                verdicts = self.decider.decide_many(self.graph.vectors(part))
                self._verdict[part] = np.asarray(verdicts, np.uint8)
            self.tested += len(wanted)
        return self._verdict[numbers]

    def settle(self, numbers: Numbers) -> None:
        """Decide states; where all of the policy's outcomes are known to be safe, it is safe."""
        self._fit()
        open_ = np.unique(numbers[self._verdict[numbers] == _UNASKED])
        open_ = open_[self.graph.degree[open_] > 0]
        if len(open_):
            outcomes, begin = self._outcomes(open_)
            safe = self._verdict[outcomes] == Verdict.SAFE
            sure = open_[np.logical_and.reduceat(safe, begin)]
            self._verdict[sure] = Verdict.SAFE
            self.tested += len(sure)
        self.ask(numbers)

    def _outcomes(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """All outcomes of acting states, and where those of each begin."""
        degree = self.graph.degree[numbers]
        begin = np.cumsum(degree) - degree
        rows = np.repeat(self.graph.first[numbers] - begin, degree) + np.arange(degree.sum())
        return self.graph.edges[rows], begin

    def judge(self, numbers: Numbers) -> tuple[NDArray[np.uint8], Numbers, NDArray[np.bool_]]:
        """Per expanded state: its verdict, an unsafe outcome of a fault or -1, is it open?"""
        verdicts = self.ask(numbers)
        bad = np.full(len(numbers), -1, np.int64)
        unknown = verdicts == Verdict.UNKNOWN
        acting = np.flatnonzero((verdicts == Verdict.SAFE) & (self.graph.degree[numbers] > 0))
        if len(acting):
            outcomes, begin = self._outcomes(numbers[acting])
            found = self.ask(outcomes)
            places = np.where(found == Verdict.UNSAFE, np.arange(len(found)), len(found))
            worst = np.minimum.reduceat(places, begin)
            faulty = worst < len(found)
            bad[acting[faulty]] = outcomes[worst[faulty]]
            doubtful = np.logical_or.reduceat(found == Verdict.UNKNOWN, begin)
            unknown[acting[doubtful & ~faulty]] = True
        return verdicts, bad, unknown


def find_faults(
    task: Task,
    policy: Policy,
    runs: Sequence[Run],
    decider: Decider | None = None,
    *,
    direction: Direction = "backward",
    radius: float = math.inf,
    first_only: bool = False,
) -> FaultAnalysis:
    """All faults on runs of ``policy``, with one cache for all of them.

    Args:
        decider: its cache is used and kept, within its budget (`Decider.make_room`); by
            default a new one that gives up (UNKNOWN) at five million states.
        direction: in which order the states of a run are decided; backward profits from
            the cache. It decides which fault ``first_only`` means, and nothing else.
        radius: r of r-safety; a decider that is given must have the same.
        first_only: stop at the first fault of each run.
    """
    if direction not in ("backward", "forward"):
        raise ConfigError(f"direction must be 'backward' or 'forward', got {direction!r}")
    if decider is None:
        decider = _default_decider(task, policy, radius)
    elif getattr(decider, "radius", radius) != radius:
        raise ConfigError(
            f"the decider has radius {getattr(decider, 'radius', None)}, not {radius}"
        )
    require_decider_of(task, decider)
    given = Runs.of(task, runs)
    graph = PolicyGraph(task, policy)
    numbers = graph.intern_packed(given.words)
    graph.expand(numbers)
    _check_actions(given, graph, numbers)
    safety = StateSafety(graph, decider)
    search = _Search(given, numbers, safety, direction)
    if first_only:
        search.first_of_each()
    else:
        search.all()
    return search.result(radius)


def _default_decider(task: Task, policy: Policy, radius: float) -> Decider:
    from safetest_gym.deciders import Budget, make_decider

    finite = policy if radius != math.inf else None
    budget = Budget(states=_DECIDER_STATES)
    made: Decider = make_decider("otf", task, policy=finite, radius=radius, budget=budget)
    return made


def _check_actions(runs: Runs, graph: PolicyGraph, numbers: Numbers) -> None:
    taken = runs.actions
    differ = np.flatnonzero((taken >= 0) & (graph.action[numbers] != taken))
    if len(differ):
        row = int(differ[0])
        run = int(np.searchsorted(runs.offsets, row, side="right")) - 1
        raise ConfigError(
            f"run {runs.indices[run]} is not of this policy: at step {row - runs.offsets[run]} it "
            f"takes {runs.task.actions[taken[row]]}; analyse runs with the policy that made them"
        )


class _Search:
    """The states of runs, decided in the order asked for."""

    def __init__(
        self, runs: Runs, numbers: Numbers, safety: StateSafety, direction: Direction
    ) -> None:
        self._runs = runs
        self._numbers = numbers
        self._safety = safety
        self._backward = direction == "backward"
        self._bad = np.full(len(numbers), -1, np.int64)
        self._unknown = np.zeros(len(numbers), np.bool_)
        self._verdict = np.full(len(numbers), Verdict.UNKNOWN, np.uint8)
        self._acting = runs.actions >= 0

    def _judge(self, rows: Numbers) -> None:
        verdicts, bad, unknown = self._safety.judge(self._numbers[rows])
        self._verdict[rows], self._bad[rows], self._unknown[rows] = verdicts, bad, unknown

    def all(self) -> None:
        """Decide every state on the runs."""
        if self._backward:
            first, row = self._runs.offsets[:-1], self._runs.offsets[1:] - 1
            while len(row):
                self._safety.settle(self._numbers[row])
                first, row = first[row > first], row[row > first] - 1
        self._judge(np.arange(len(self._numbers)))

    def first_of_each(self) -> None:
        """Go along each run up to its first fault."""
        offsets = self._runs.offsets.tolist()
        for first, last in itertools.pairwise(offsets):
            steps = range(last - 1, first - 1, -1) if self._backward else range(first, last)
            self._judge(np.array([first]))
            kept = self._bad[first]
            for row in steps:
                self._judge(np.array([row]))
                if self._bad[row] >= 0 and self._acting[row]:
                    break
            if kept >= 0 and row != first:
                self._bad[first] = -1

    def result(self, radius: float) -> FaultAnalysis:
        """Put together what was found."""
        runs, offsets = self._runs, self._runs.offsets
        rows = np.flatnonzero((self._bad >= 0) & self._acting)
        owner = np.searchsorted(offsets, rows, side="right") - 1
        steps: list[list[int]] = [[] for _ in range(len(runs))]
        for row, run in zip(rows.tolist(), owner.tolist(), strict=True):
            steps[run].append(row - int(offsets[run]))
        doubt = np.zeros(len(runs), np.bool_)
        doubt[np.searchsorted(offsets, np.flatnonzero(self._unknown), side="right") - 1] = True
        faulty = np.array([bool(found) for found in steps], np.bool_)
        unsafe = runs.ends == 0
        on_unsafe = np.repeat(unsafe, np.diff(offsets))
        bugs = np.unique(self._numbers[on_unsafe & (self._verdict == Verdict.SAFE)])
        return FaultAnalysis(
            faults=self._faults(rows, owner, radius),
            steps=tuple(map(tuple, steps)),
            starts=tuple(Verdict(int(v)) for v in self._verdict[offsets[:-1]]),
            unavoidable=tuple(runs.indices[unsafe & ~faulty & ~doubt].tolist()),
            unresolved=tuple(runs.indices[~faulty & doubt].tolist()),
            bugs=self._safety.graph.vectors(bugs),
            tested=self._safety.tested,
        )

    def _faults(self, rows: Numbers, owner: Numbers, radius: float) -> tuple[Fault, ...]:
        graph, runs = self._safety.graph, self._runs
        distinct, places, counts = np.unique(
            self._numbers[rows], return_index=True, return_counts=True
        )
        states = graph.vectors(distinct)
        outcomes = graph.vectors(self._bad[rows[places]])
        safe = safe_alternatives(self._safety.decider, states)
        faults = []
        for i in np.argsort(places).tolist():
            run = int(owner[places[i]])
            fault = Fault(
                states[i],
                int(graph.action[distinct[i]]),
                outcomes[i],
                tuple(np.flatnonzero(safe[i]).tolist()),
                int(runs.indices[run]),
                int(rows[places[i]] - runs.offsets[run]),
                Verdict(int(self._verdict[runs.offsets[run]])),
                int(counts[i]),
                radius,
            )
            faults.append(fault)
        return tuple(faults)
