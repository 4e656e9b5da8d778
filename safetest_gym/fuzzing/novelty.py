"""Novelty: the smallest combination of variable values not seen before ([D] section 5)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing.seeding import stir

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["NoveltyTable"]

_BINS = 100
_MIX = np.uint64(0x9E3779B97F4A7C15)


class NoveltyTable:
    """Value combinations of the states seen so far.

    Values of real variables fall into 100 equal bins between their bounds; without bounds
    they are rounded to whole numbers.

    Args:
        size: largest combinations that are remembered, 1 to 3.
    """

    def __init__(self, task: Task, size: int) -> None:
        if not 1 <= size <= 3:
            raise ConfigError(f"novelty is for combinations of 1 to 3 values, got {size}")
        self.size = min(size, task.num_variables)
        variables = range(task.num_variables)
        self._places = [
            np.array(list(combinations(variables, k)), np.int64).reshape(-1, k)
            for k in range(1, self.size + 1)
        ]
        self._seen: list[set[int]] = [set() for _ in self._places]
        self._real = np.array([v.kind == "real" for v in task.variables], np.bool_)
        bounds = [(v.lower, v.upper) if v.kind == "real" else (None, None) for v in task.variables]
        bounded = [None not in pair for pair in bounds]
        self._lower = np.array(
            [
                float(a) if ok and a is not None else 0.0
                for (a, _), ok in zip(bounds, bounded, strict=True)
            ]
        )
        self._width = np.array(
            [
                max((float(b) - float(a)) / _BINS, 1e-300)
                if ok and a is not None and b is not None
                else 1.0
                for (a, b), ok in zip(bounds, bounded, strict=True)
            ]
        )

    def novelty(self, state: NDArray[Any]) -> int:
        """Size of the smallest combination that is new, or one more than is remembered."""
        for k, codes in enumerate(self._codes(state)):
            if not self._seen[k].issuperset(codes.tolist()):
                return k + 1
        return self.size + 1

    def add(self, state: NDArray[Any]) -> None:
        """Remember a state's combinations."""
        for seen, codes in zip(self._seen, self._codes(state), strict=True):
            seen.update(codes.tolist())

    def _codes(self, state: NDArray[Any]) -> list[NDArray[np.uint64]]:
        values = np.asarray(state)
        if self._real.any():
            binned = np.floor((values - self._lower) / self._width)
            values = np.where(self._real, binned, values)
        with np.errstate(over="ignore"):
            bits: NDArray[np.uint64] = values.astype(np.int64).view(np.uint64)
            numbers = np.arange(1, len(bits) + 1, dtype=np.uint64)
            single = stir(stir(bits + _MIX) + numbers)
            found = []
            for places in self._places:
                code: NDArray[np.uint64] = np.zeros(len(places), np.uint64)
                for column in places.T:
                    code = stir(code * _MIX + single[column])
                found.append(code)
        return found
