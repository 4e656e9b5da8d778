"""Ways from one test state to another ([F] section 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing.interner import Interner

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Backward", "Forward", "Operator", "Perturb", "Reached"]


class Operator(Protocol):
    """Offers states to go to from a state."""

    def first(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """States to begin with, at most ``count``."""
        ...

    def offers(self, state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Where one step may lead; none is a dead end of the walk."""
        ...


class Forward:
    """Take actions, from start states on: every state is reachable."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def first(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._task.initial.sample(count, rng)

    def offers(self, state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        found = []
        if not self._task.classify(state.reshape(1, -1))[0]:
            for _, outcomes in self._task.successors(state):
                found.append(outcomes[int(rng.integers(len(outcomes)))][1])
        return np.array(found, self._task.dtype).reshape(-1, self._task.num_variables)


class Reached:
    """The states found by going forward from the start states, and how they are connected.

    Args:
        limit: after this many states nothing more is expanded.
        starts: start states to begin with; all of them if there are no more.
    """

    def __init__(self, task: Task, *, limit: int = 200_000, starts: int = 1_000) -> None:
        self.task = task
        count = task.initial.count()
        if count is not None and count <= starts:
            first = task.initial.enumerate(starts)
        else:
            first = task.initial.sample(starts, np.random.default_rng(0))
        self._interner = Interner(task.engine.num_words)
        self._interner.add(task.engine.pack(first))
        sources, targets, kinds = [], [], []
        begin = 0
        while begin < self._interner.known <= limit or begin == 0:
            end = self._interner.known
            words = self._interner.states[begin:end].copy()
            kinds.append(task.engine.classify(words))
            acting = np.flatnonzero(kinds[-1] == 0)
            expansion = task.engine.expand(words[acting])
            sources.append(np.repeat(begin + acting, np.diff(expansion.first)))
            targets.append(self._interner.add(expansion.states))
            begin = end
        self.words = self._interner.states[: self._interner.known]
        self.goals = np.flatnonzero(np.concatenate(kinds) == 2)
        target = np.concatenate(targets)
        order = np.argsort(target, kind="stable")
        self._source = np.concatenate(sources)[order]
        self._first = np.searchsorted(target[order], np.arange(self._interner.known + 1))

    def number(self, state: NDArray[Any]) -> int:
        """The state's number, or -1 if it was not reached."""
        number = int(self._interner.add(self.task.engine.pack(state.reshape(1, -1)))[0])
        return number if number < len(self.words) else -1

    def predecessors(self, number: int) -> NDArray[np.int64]:
        """Different states with a step into this one."""
        return np.unique(self._source[self._first[number] : self._first[number + 1]])


class Backward:
    """Take steps back from goal states, as far as going forward has found them.

    Where outcomes are left to chance, the goal is possible from every state found, not sure.
    """

    def __init__(self, reached: Reached) -> None:
        if not len(reached.goals):
            raise ConfigError("no goal state was reached; a higher limit may help")
        self._reached = reached

    def first(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        goals = self._reached.goals
        chosen = rng.choice(goals, min(count, len(goals)), replace=False)
        return self._reached.task.engine.unpack(self._reached.words[chosen])

    def offers(self, state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        number = self._reached.number(state)
        found = self._reached.predecessors(number) if number >= 0 else np.empty(0, np.int64)
        return self._reached.task.engine.unpack(self._reached.words[found])


class Perturb:
    """Set some variables to other values within their bounds.

    Args:
        most: variables changed at once.
        offered: states offered per step.
        reached: only states known there are offered; without it, reachable or not.
    """

    def __init__(
        self, task: Task, *, most: int = 2, offered: int = 8, reached: Reached | None = None
    ) -> None:
        if most < 1 or offered < 1:
            raise ConfigError("most and offered must be positive")
        self._task, self._most, self._offered, self._reached = task, most, offered, reached

    def first(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._task.initial.sample(count, rng)

    def offers(self, state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        found = [self._changed(state, rng) for _ in range(self._offered)]
        if self._reached is not None:
            found = [other for other in found if self._reached.number(other) >= 0]
        return np.array(found, self._task.dtype).reshape(-1, self._task.num_variables)

    def _changed(self, state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        result = state.copy()
        size = int(rng.integers(1, min(self._most, len(state)) + 1))
        for place in rng.choice(len(state), size, replace=False):
            variable = self._task.variables[place]
            lower, upper = variable.lower, variable.upper
            if variable.kind == "bool":
                lower, upper = 0, 1
            low = float(result[place]) - 1 if lower is None else float(lower)
            high = float(result[place]) + 1 if upper is None else float(upper)
            if variable.kind == "real":
                result[place] = rng.uniform(low, high)
            else:
                result[place] = rng.integers(int(low), int(high) + 1)
        return result
