"""Pool fuzzing: random walks from a growing pool of test states ([D] Algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing.biases import Bias, weights
from safetest_gym.fuzzing.fuzzer import Fuzzer
from safetest_gym.fuzzing.novelty import NoveltyTable
from safetest_gym.fuzzing.operators import Forward, Operator
from safetest_gym.fuzzing.runs import End
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["PoolConfig", "PoolFuzzer", "TestState"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolConfig:
    """Sizes and switches of pool fuzzing.

    Attributes:
        size: states in the pool at the end, if it gets there.
        walk: longest random walk.
        novelty: a new state must have a combination of at most so many values that no state
            of the pool has; 0 lets every new state in.
        bias: see `safetest_gym.fuzzing.biases.weights`.
        starts: states to begin with.
        max_steps: longest policy run that the bias looks at.
        seconds: time limit.
        walks: walks after which it stops, full or not; by default 50 per state of the pool.
    """

    size: int = 200
    walk: int = 5
    novelty: int = 0
    bias: Bias = "none"
    starts: int = 1
    max_steps: int = 1_000
    seconds: float = math.inf
    walks: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.size, self.walk, self.starts) < 1 or not self.seconds > 0:
            raise ConfigError("size, walk, starts and seconds of a pool must be positive")
        if min(self.max_steps, self.walks or 0) < 0:
            raise ConfigError("max_steps and walks of a pool must not be negative")
        if not 0 <= self.novelty <= 3:
            raise ConfigError(f"novelty must be 0 (off) to 3, got {self.novelty}")
        if self.bias not in get_args(Bias):
            raise ConfigError(f"bias must be one of {', '.join(get_args(Bias))}, got {self.bias!r}")


@dataclass(frozen=True, slots=True, eq=False)
class TestState:
    """A state of the pool: where its walk began, and how many steps away that is."""

    __test__ = False  # not for pytest

    state: NDArray[Any]
    parent: int
    steps: int


class PoolFuzzer:
    """Builds pools of test states.

    Args:
        operator: how walks step; by default actions forward from start states.
        dead_end: of states (n, V), which are not worth testing; walks do not enter them. By
            default failing states and, unless they are goals, states without an action.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        config: PoolConfig | None = None,
        *,
        operator: Operator | None = None,
        dead_end: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None,
    ) -> None:
        self._task = task
        self.config = config or PoolConfig()
        self._operator: Operator = operator or Forward(task)
        self._dead_end = dead_end or self._is_over
        self._fuzzer = Fuzzer(task, policy, max_steps=self.config.max_steps, seed=self.config.seed)

    def _is_over(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        kind = self._task.classify(states)
        stuck = ~self._task.applicable_many(states).any(axis=1)
        over: NDArray[np.bool_] = ((kind & 1) != 0) | (stuck & (kind == 0))
        return over

    def run(self, progress: Callable[[int], None] | None = None) -> list[TestState]:
        """Grow a pool; shorter than asked if time or walks are over.

        Args:
            progress: called with the size of the pool.
        """
        config = self.config
        rng = np.random.default_rng(config.seed % 2**64)
        table = NoveltyTable(self._task, config.novelty) if config.novelty else None
        pool = _Pool(config.size, table)
        for state in self._operator.first(config.starts, rng):
            pool.offer(state, -1, 0, always=True)
        deadline = time.monotonic() + config.seconds
        left = 50 * config.size if config.walks is None else config.walks
        while len(pool.states) < config.size and left > 0 and time.monotonic() < deadline:
            left -= 1
            self._walk(pool, rng)
            if progress is not None:
                progress(len(pool.states))
        return pool.states

    def _walk(self, pool: _Pool, rng: np.random.Generator) -> None:
        parent = int(rng.integers(len(pool.states)))
        state = pool.states[parent].state
        steps = 0
        for _ in range(int(rng.integers(1, self.config.walk + 1))):
            offers = self._operator.offers(state, rng)
            if len(offers):
                offers = offers[~self._dead_end(offers)]
            chosen = self._choose(offers, (pool, parent, steps + 1), rng)
            if chosen < 0:
                break
            state = offers[chosen]
            steps += 1
        if steps:
            pool.offer(state, parent, steps)

    def _choose(
        self, offers: NDArray[Any], here: tuple[_Pool, int, int], rng: np.random.Generator
    ) -> int:
        """Which offer to take, or -1; where the policy misses the goal, offers go to the pool."""
        if not len(offers):
            return -1
        if self.config.bias == "none":
            return int(rng.integers(len(offers)))
        runs = self._fuzzer.run_from(offers)
        weight = weights(self.config.bias, runs)
        if self.config.bias == "quality":
            pool, parent, steps = here
            for state in offers[runs.ends != End.GOAL]:
                pool.offer(state, parent, steps)
        total = weight.sum()
        if total <= 0:
            return -1 if self.config.bias == "quality" else int(rng.integers(len(offers)))
        return int(rng.choice(len(offers), p=weight / total))


class _Pool:
    """The states so far, each once."""

    def __init__(self, size: int, table: NoveltyTable | None) -> None:
        self._size = size
        self._table = table
        self._known: set[bytes] = set()
        self.states: list[TestState] = []

    def offer(self, state: NDArray[Any], parent: int, steps: int, *, always: bool = False) -> None:
        key = state.tobytes()
        if key in self._known or len(self.states) >= self._size:
            return
        if self._table is not None:
            if not always and self._table.novelty(state) > self._table.size:
                return
            self._table.add(state)
        self._known.add(key)
        self.states.append(TestState(state.copy(), parent, steps))
