"""Where episodes start: a stream of uniform start states, or a state somebody chose."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError, StateError
from safetest_gym.task import Task

__all__ = ["BATCH", "StartStream", "chosen_start", "derived_seeds"]

BATCH = 64
"""Start states drawn at once; drawing one by one costs an order of magnitude more."""


def derived_seeds(random: np.random.Generator) -> tuple[int, int]:
    """Seeds of the steps and of the start states that follow from an environment's seed."""
    steps, starts = random.integers(2**63, size=2).tolist()
    return steps, starts


LISTABLE = 1_000_000
"""Sets of start states up to this size are numbered, in their order of enumeration."""


class StartStream:
    """Start states of one environment, in the same order however they are fetched."""

    def __init__(self, task: Task, seed: int) -> None:
        self._task = task
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._drawn: NDArray[Any] = task.initial.sample(1, self._random)
        self._used = 0

    def take(self, count: int) -> NDArray[Any]:
        """The next ``count`` start states, shape (count, V)."""
        if count == 1 and self._used < len(self._drawn):
            self._used += 1
            return self._drawn[self._used - 1 : self._used]
        parts: list[NDArray[Any]] = []
        while count:
            if self._used == len(self._drawn):
                self._drawn = self._task.initial.sample(BATCH, self._random)
                self._used = 0
            part = self._drawn[self._used : self._used + count]
            self._used += len(part)
            count -= len(part)
            parts.append(part)
        return np.concatenate(parts)


def chosen_start(task: Task, options: Mapping[str, Any]) -> NDArray[Any]:
    """The state that reset options ask for: ``state``, or ``index`` into the start states."""
    if set(options) not in ({"state"}, {"index"}):
        raise ConfigError(f"reset options are either 'state' or 'index', got {sorted(options)}")
    if "index" in options:
        return _numbered_start(task, index(options["index"]))
    given = options["state"]
    if not isinstance(given, Mapping):
        values = np.asarray(given).tolist()
        if not isinstance(values, list) or len(values) != task.num_variables:
            raise StateError(
                f"a state is a vector of {task.num_variables} values or a mapping, got {given!r}"
            )
        names = [variable.name for variable in task.variables]
        given = dict(zip(names, values, strict=True))
    return task.state(given)


def _numbered_start(task: Task, number: int) -> NDArray[Any]:
    count = task.initial.count()
    if count is None or not 0 <= number < count:
        of = "infinitely many" if count is None else str(count)
        raise StateError(f"there is no start state number {number} (there are {of})")
    if count > LISTABLE:
        raise StateError(
            f"{count} start states are too many to number them (limit {LISTABLE}); "
            "give options={'state': ...}"
        )
    found: NDArray[Any] = task.initial.enumerate(LISTABLE)[number]
    return found
