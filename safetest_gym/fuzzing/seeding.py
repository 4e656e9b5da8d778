"""Randomness by run number: the same for run k, however many workers share the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["StartBlocks", "stir", "streams"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 256


def streams(seed: int, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """The random stream of each run, as the counter that its numbers begin with."""
    with np.errstate(over="ignore"):
        base = stir(np.array([seed % 2**64], np.uint64) + _GOLDEN)
        mixed = stir(base ^ stir(indices.astype(np.uint64) * _GOLDEN + np.uint64(1)))
    return mixed.view(np.int64)


def stir(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits so that every bit counts (splitmix64); overflow is meant."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class StartBlocks:
    """Start states by run number, drawn in blocks that depend on seed and block alone."""

    def __init__(self, task: Task, seed: int) -> None:
        self._task = task
        self._seed = seed % 2**64
        self._kept: tuple[int, NDArray[Any]] | None = None

    def packed(self, first: int, count: int) -> NDArray[np.int64]:
        """Packed start states of runs ``first .. first + count - 1``."""
        parts = []
        done = 0
        while done < count:
            block, place = divmod(first + done, _BLOCK)
            rows = self._draw(block)[place : place + count - done]
            parts.append(rows)
            done += len(rows)
        empty = np.empty((0, self._task.engine.num_words), np.int64)
        return np.concatenate([empty, *parts])

    def _draw(self, block: int) -> NDArray[Any]:
        if self._kept is None or self._kept[0] != block:
            rng = np.random.default_rng([self._seed, block])
            packed = self._task.engine.pack(self._task.initial.sample(_BLOCK, rng))
            self._kept = block, packed
        return self._kept[1]
