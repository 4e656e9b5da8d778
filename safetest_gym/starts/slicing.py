"""All start states, a slice at a time: for sets that fit no memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import StartError
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.condition import ConditionStarts
from safetest_gym.starts.counting import Diagram

__all__ = ["start_slices"]

_MOST = 2**62
_GOLDEN = 0.6180339887


def start_slices(starts: StartSet, size: int, *, scattered: bool = False) -> Iterator[NDArray[Any]]:
    """Every state once, in arrays of at most ``size`` rows; order is the set's own.

    Args:
        scattered: far apart slices follow each other, so that the first few are of all parts.

    Raises:
        StartError: there are infinitely many, or more than 2**62.
    """
    count = starts.count()
    if count is None:
        raise StartError("there are infinitely many start states; they cannot be listed")
    if count > _MOST:
        raise StartError(f"{count} start states are too many to be listed")
    if count <= size or not isinstance(starts, ConditionStarts):
        states = starts.enumerate(count)
        for first in _firsts(count, size, scattered):
            yield states[first : first + size]
        return
    plan = starts.plan
    parts = [_Numbered(part.diagram) for part in plan.parts]
    for first in _firsts(count, size, scattered):
        rest = np.arange(first, min(first + size, count))
        out = np.empty((len(rest), len(starts.variables)), dtype=starts.dtype)
        for column, value in plan.fixed.items():
            out[:, column] = value
        for part in reversed(parts):
            rest, number = np.divmod(rest, part.total)
            part.fill(number, out)
        yield out


def _firsts(count: int, size: int, scattered: bool) -> Iterator[int]:
    """Where the slices begin; steps of a golden section come by everywhere."""
    slices = -(-count // size)
    step = max(1, round(slices * _GOLDEN)) if scattered else 1
    while math.gcd(step, slices) > 1:
        step += 1
    return (number * step % slices * size for number in range(slices))


class _Numbered:
    """The paths of a diagram by number."""

    def __init__(self, diagram: Diagram) -> None:
        self._draws = diagram.draws
        counts = np.ones(1, dtype=np.int64)
        self._levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for draw in reversed(self._draws):
            if len(counts) == 1 and len(draw.target):
                counts = np.ones(int(draw.target.max()) + 1, dtype=np.int64) * counts[0]
            below = counts[draw.target]
            width = 1 if draw.real else (draw.high - draw.low + 1).astype(np.int64)
            running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(below * width)])
            self._levels.append((running, below))
            counts = running[draw.first[1:]] - running[draw.first[:-1]]
        self._levels.reverse()
        self.total = int(counts[0])

    def fill(self, number: NDArray[np.int64], out: NDArray[Any]) -> None:
        """Write the paths of these numbers into the columns of ``out``."""
        node: NDArray[Any] = np.zeros(len(number), dtype=np.int64)
        for draw, (running, below) in zip(self._draws, self._levels, strict=True):
            at = running[draw.first[node]] + number
            edge = np.searchsorted(running, at, side="right") - 1
            step, number = np.divmod(at - running[edge], below[edge])
            out[:, draw.column] = draw.low[edge] + (0 if draw.real else step)
            node = draw.target[edge]
