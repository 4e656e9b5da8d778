"""Cover all that a policy can reach by cells of a grid, until one of them can fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from safetest_gym.verify.boxes import BoxSystem
from safetest_gym.verify.grid import Cells, Grid
from safetest_gym.verify.narrowing import Boxes

__all__ = ["Cover", "TooManyCellsError"]

_BATCH = 8192
_PATHS = 3


class TooManyCellsError(Exception):
    """More cells than the budget allows; the number is how many."""


class Cover:
    """One search over the cells of a grid, breadth first.

    Args:
        limit: of cells.
        tell: called with the cells known and expanded.

    Attributes:
        reached: numbers of all cells reached, ascending.
        paths: ways over cells from the starts to cells that can fail; empty: a proof.
    """

    def __init__(
        self,
        system: BoxSystem,
        grid: Grid,
        limit: int,
        tell: Callable[[int, int], None],
    ) -> None:
        self._system, self._grid = system, grid
        self._limit, self._tell = limit, tell
        self.reached = np.zeros(0, np.int64)
        self.paths: list[Cells] = []
        self._layers: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def search(self, starts: Boxes) -> None:
        """Go on until nothing new is found, or a layer can fail."""
        keys, _ = self._new(starts)
        parents, expanded = np.full(len(keys), -1, np.int64), 0
        while len(keys):
            self._layers.append((keys, parents))
            self.reached = np.union1d(self.reached, keys)
            boxes = self._grid.boxes(self._grid.cells(keys))
            failing = np.flatnonzero(self._system.can_fail(boxes)[0])
            if len(failing):
                picked = failing[np.linspace(0, len(failing) - 1, _PATHS).astype(np.int64)]
                self.paths = [self._path(int(keys[i])) for i in np.unique(picked)]
                return
            found, sources = [], []
            for first in range(0, len(keys), _BATCH):
                self._tell(len(self.reached), expanded)
                part = slice(first, first + _BATCH)
                images = self._system.images((boxes[0][part], boxes[1][part]))
                new, row = self._new(images.target)
                found.append(new)
                sources.append(keys[part][images.owner[row]])
                expanded += len(keys[part])
            keys, index = np.unique(np.concatenate(found), return_index=True)
            parents = np.concatenate(sources)[index]

    def _new(self, boxes: Boxes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cells that boxes meet and that were not reached, each with the row of a box."""
        first, last = self._grid.spans(boxes)
        both = np.concatenate([first, last], axis=1)
        _, rows = np.unique(both, axis=0, return_index=True)
        first, last = first[rows], last[rows]
        wanted = len(self.reached) + self._grid.count(first, last)
        if wanted > 4 * self._limit:
            raise TooManyCellsError(int(wanted))
        keys, owner = self._grid.within(first, last)
        keys, index = np.unique(keys, return_index=True)
        at = np.searchsorted(self.reached, keys)
        at[at == len(self.reached)] = 0
        new = np.ones(len(keys), np.bool_)
        if len(self.reached):
            new = self.reached[at] != keys
        if len(self.reached) + int(new.sum()) > self._limit:
            raise TooManyCellsError(len(self.reached) + int(new.sum()))
        return keys[new], rows[owner[index[new]]]

    def _path(self, key: int) -> Cells:
        """From a start to the cell, which is in the last layer."""
        path = [key]
        for keys, parents in reversed(self._layers):
            parent = int(parents[np.searchsorted(keys, path[-1])])
            if parent < 0:
                break
            path.append(parent)
        return self._grid.cells(np.array(path[::-1], np.int64))
