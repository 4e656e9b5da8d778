"""Policy-run fuzzing: runs that are driven towards failing states ([J] Algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels.fuzzing import (
    FAILING,
    HERE,
    LENGTH,
    MORE,
    NO_PATH,
    PLACES,
    RUN,
    STAMP,
    fuzz_kernel,
)
from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing.graph import Distance, PolicyGraph
from safetest_gym.fuzzing.runs import End, Runs
from safetest_gym.fuzzing.seeding import StartBlocks, streams
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.engine.native import Evaluator
    from safetest_gym.task import Task

__all__ = ["FuzzBudget", "Fuzzer", "Strategy"]

Strategy = Literal["uniform", "greedy", "weighted"]

BATCH = 256
"""Runs whose states are held as numbers of the graph at once."""

_ENDLESS = 2**62
"""Larger limits are never reached either."""

_SLICE = 50_000
"""States seen between two looks at the clock and the keyboard."""

assert int(End.FAILING) == FAILING


@dataclass(frozen=True, kw_only=True, slots=True)
class FuzzBudget:
    """Limits of fuzzing.

    Attributes:
        search: states that one continuation search may see before it settles for the
            last layer; part of what a run is.
        states: states of the policy's graph that are remembered from run to run.
        seconds: after this no new batch of runs begins.
    """

    search: int = 100_000
    states: int = 4_000_000
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.search < 1 or self.states < 1 or not self.seconds > 0:
            raise ConfigError("search, states and seconds of a budget must be positive")


@dataclass(eq=False)
class Fuzzer:
    """Runs of a policy, number k always the same, whatever else is run before or beside it.

    A continuation is searched breadth-first in the policy's graph until a failing state, a
    layer whose state closest to failing is unique, or exhaustion. Then ``greedy`` goes to
    the closest state of that layer (ties by chance), ``weighted`` to any state seen, with
    weight exp(-distance). ``uniform`` takes one outcome after the other, each different one
    as likely.

    Pickled, it forgets what it knows of the policy's graph, and gives the same runs.

    Attributes:
        lookahead: layers of a search; `math.inf` for no limit, which is the default, as [J]
            does best with it. ``uniform`` has 1.
        max_steps: actions after which a run ends.
        distance: how far states are from failing instead of [J]'s measure: a function of
            states (n, V), for instance a learned value, or an expression as text.
        graph: what is known of the policy's graph.
    """

    task: Task
    policy: Policy
    _: KW_ONLY
    strategy: Strategy = "uniform"
    lookahead: float | None = None
    max_steps: int = 10_000
    distance: Distance | str | None = None
    budget: FuzzBudget = FuzzBudget()
    seed: int = 0
    graph: PolicyGraph = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.lookahead is None:
            self.lookahead = 1 if self.strategy == "uniform" else math.inf
        _check(self.strategy, self.lookahead, self.max_steps)
        self.graph = PolicyGraph(self.task, self.policy, self._measure())
        self._config = np.array(
            [
                get_args(Strategy).index(self.strategy),
                -1 if self.lookahead > _ENDLESS else int(self.lookahead),
                min(self.max_steps, _ENDLESS),
                min(self.budget.search, _ENDLESS),
            ],
            np.int64,
        )
        self._starts = StartBlocks(self.task, self.seed)
        self._progress = np.zeros(PLACES, np.int64)
        self._seen = np.zeros(0, np.int64)
        self._parent = np.zeros(0, np.int64)
        self._queue = np.zeros(0, np.int64)

    def _measure(self) -> Evaluator | Distance | None:
        if self.strategy == "uniform":
            return None
        if isinstance(self.distance, str):
            return self.task.evaluator([self.distance])
        return self.task.distance_evaluator if self.distance is None else self.distance

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def run(
        self,
        count: int,
        *,
        first: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Runs:
        """Runs number ``first``, ``first + 1``, … from start states drawn uniformly.

        Fewer than ``count`` only if the budget's seconds are over.

        Args:
            progress: called with runs done and unsafe runs among them.
        """

        def begin(number: int, size: int) -> NDArray[np.int64]:
            return self._starts.packed(first + number, size)

        return self._run(begin, count, first, progress)

    def run_from(
        self,
        states: NDArray[Any],
        *,
        first: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Runs:
        """One run from each of these states (n, V); run i is number ``first + i``."""
        packed = self.task.engine.pack(states)

        def begin(number: int, size: int) -> NDArray[np.int64]:
            return packed[number : number + size]

        return self._run(begin, len(packed), first, progress)

    def run_all(
        self, limit: int = 1_000_000, *, progress: Callable[[int, int], None] | None = None
    ) -> Runs:
        """One run from every start state; `LimitError` if there are more than ``limit``."""
        return self.run_from(self.task.initial.enumerate(limit), progress=progress)

    def _run(
        self,
        begin: Callable[[int, int], NDArray[np.int64]],
        count: int,
        first: int,
        progress: Callable[[int, int], None] | None,
    ) -> Runs:
        deadline = time.monotonic() + self.budget.seconds
        parts: list[Runs] = []
        done = unsafe = 0
        while done < count and (not parts or time.monotonic() < deadline):
            size = min(BATCH, count - done)
            indices = np.arange(first + done, first + done + size)
            parts.append(self._batch(begin(done, size), indices))
            done += size
            unsafe += parts[-1].count(End.FAILING)
            if progress is not None:
                progress(done, unsafe)
        return Runs.join(self.task, parts)

    def _batch(self, starts: NDArray[np.int64], indices: NDArray[np.int64]) -> Runs:
        if self.graph.size > self.budget.states:
            self.graph.clear()
        numbers = self.graph.intern_packed(starts)
        seeds = streams(self.seed, indices)
        offsets = np.zeros(len(starts) + 1, np.int64)
        ends = np.zeros(len(starts), np.int64)
        path = np.empty(max(4096, 16 * len(starts)), np.int64)
        progress = self._progress
        progress[RUN], progress[LENGTH], progress[HERE] = 0, 0, -1
        while True:
            result = fuzz_kernel(
                self.graph.arrays,
                self._search_arrays(),
                self._config,
                numbers,
                seeds,
                path,
                offsets,
                ends,
                progress,
                _SLICE,
            )
            if result == 0:
                break
            if result == NO_PATH:
                path.resize(2 * len(path) + int(min(self._config[2], 10_000)), refcheck=False)
            elif result != MORE:
                self.graph.help(result)
        used = path[: offsets[-1]]
        actions = self.graph.action[used]
        actions[offsets[1:] - 1] = -1
        return Runs(self.task, self.graph.states[used], actions, offsets, ends, indices)

    def _search_arrays(self) -> tuple[NDArray[np.int64], ...]:
        capacity = self.graph.capacity
        if len(self._seen) < capacity:
            seen = np.zeros(capacity, np.int64)
            seen[: len(self._seen)] = self._seen
            self._seen = seen
            self._parent = np.empty(capacity, np.int64)
            self._queue = np.empty(capacity + 1, np.int64)
        assert self._progress[STAMP] >= 0
        return self._seen, self._parent, self._queue


def _check(strategy: str, lookahead: float, max_steps: int) -> None:
    if strategy not in get_args(Strategy):
        raise ConfigError(
            f"strategy must be one of {', '.join(get_args(Strategy))}, got {strategy!r}"
        )
    if not lookahead >= 1 or (lookahead != math.inf and lookahead != int(lookahead)):
        raise ConfigError(f"lookahead must be 1, 2, … or math.inf, got {lookahead}")
    if strategy == "uniform" and lookahead != 1:
        raise ConfigError("uniform takes single outcomes: it has lookahead 1 only")
    if max_steps < 0:
        raise ConfigError(f"max_steps must not be negative, got {max_steps}")
