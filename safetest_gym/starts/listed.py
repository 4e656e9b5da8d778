"""Start states given one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safetest_gym.errors import LimitError
from safetest_gym.jani.tree import StartValues, Value, Variable
from safetest_gym.starts.base import StartSet

__all__ = ["ListedStarts"]


class ListedStarts(StartSet):
    """A list of states as a set: repetitions are dropped, the first occurrence keeps its place."""

    def __init__(self, variables: Sequence[Variable], start: StartValues) -> None:
        super().__init__(variables)
        rows = dict.fromkeys(tuple(_number(value) for value in state) for state in start.states)
        self._states = np.array(list(rows), dtype=self.dtype).reshape(-1, len(self.variables))
        self._known = {tuple(row) for row in self._states.tolist()}

    def count(self) -> int:
        """How many distinct states there are."""
        return len(self._states)

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """``n`` of the distinct states, independently and uniformly."""
        self._require_number(n)
        if len(self._states) == 0:
            raise self._empty()
        return self._states[rng.integers(len(self._states), size=n)]

    def enumerate(self, limit: int) -> NDArray[Any]:
        """The distinct states in the order of the list."""
        if len(self._states) > limit:
            raise LimitError(f"{len(self._states)} start states are more than the limit {limit}")
        return self._states.copy()

    def contains(self, state: ArrayLike) -> bool:
        """Is ``state`` in the list?"""
        return tuple(self._row(state).tolist()) in self._known


def _number(value: Value) -> int | float:
    return int(value) if isinstance(value, bool) else value
