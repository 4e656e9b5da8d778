"""Boxes as cells of a grid: per variable the cuts, per cell the numbers of its pieces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safetest_gym.verify.intervals import Floats
from safetest_gym.verify.narrowing import Bools, Boxes

__all__ = ["Cells", "Grid"]

Cells = NDArray[np.int32]
"""Piece per variable, (n, V)."""

_MOST_KEYS = 2**62


class Grid:
    """Cuts of the domain.

    Args:
        domain: the variables' bounds, (V,) each.
        whole: which variables are no reals.

    Attributes:
        cuts: per variable, ascending; piece i has the values from cut i up to, but
            without, cut i + 1; the last is only an end.
    """

    def __init__(self, domain: tuple[Floats, Floats], whole: Bools) -> None:
        self._whole = whole
        ends = np.where(whole, domain[1] + 1, np.nextafter(domain[1], np.inf))
        self.cuts = [np.array([low, end]) for low, end in zip(domain[0], ends, strict=True)]

    def add(self, column: int, cut: float) -> bool:
        """Make a cut; False if it is there, or outside."""
        cuts = self.cuts[column]
        at = float(np.ceil(cut)) if self._whole[column] else cut
        if not cuts[0] < at < cuts[-1] or at in cuts:
            return False
        self.cuts[column] = np.sort(np.append(cuts, at))
        return True

    def halve(self, column: int, low: float, high: float) -> bool:
        """Cut the widest pieces between two values in two; False if none can be cut."""
        cuts = self.cuts[column]
        first = max(0, int(np.searchsorted(cuts, low, side="right")) - 1)
        last = min(len(cuts) - 2, int(np.searchsorted(cuts, high, side="right")) - 1)
        lows, ends = cuts[first : last + 1], cuts[first + 1 : last + 2]
        with np.errstate(all="ignore"):
            widths = ends - lows
            middles = lows / 2 + ends / 2
        wide = np.isfinite(widths) & (widths > widths[np.isfinite(widths)].max(initial=0) / 2)
        changed = [self.add(column, float(middle)) for middle in middles[wide]]
        return any(changed)

    def join(self, other: Grid) -> None:
        """Make all cuts of another grid of the same domain, too."""
        self.cuts = [np.union1d(a, b) for a, b in zip(self.cuts, other.cuts, strict=True)]

    def boxes(self, cells: Cells) -> Boxes:
        """The boxes that cells stand for."""
        low, high = np.empty(cells.shape), np.empty(cells.shape)
        for column, cuts in enumerate(self.cuts):
            low[:, column] = cuts[cells[:, column]]
            ends = cuts[cells[:, column] + 1]
            high[:, column] = ends - 1 if self._whole[column] else np.nextafter(ends, -np.inf)
        return low, high

    def spans(self, boxes: Boxes) -> tuple[Cells, Cells]:
        """First and last piece per variable that boxes meet."""
        first, last = np.empty(boxes[0].shape, np.int32), np.empty(boxes[0].shape, np.int32)
        for column, cuts in enumerate(self.cuts):
            first[:, column] = np.searchsorted(cuts, boxes[0][:, column], side="right") - 1
            last[:, column] = np.searchsorted(cuts, boxes[1][:, column], side="right") - 1
        return first, last

    @property
    def numbered(self) -> bool:
        """Are there few enough cells for `keys`?"""
        total = 1
        for cuts in self.cuts:
            total *= len(cuts) - 1
        return total < _MOST_KEYS

    def keys(self, cells: Cells) -> NDArray[np.int64]:
        """A number per cell."""
        keys = np.zeros(len(cells), np.int64)
        for column, cuts in enumerate(self.cuts):
            keys = keys * (len(cuts) - 1) + cells[:, column]
        return keys

    def cells(self, keys: NDArray[np.int64]) -> Cells:
        """The cells with these numbers."""
        cells = np.empty((len(keys), len(self.cuts)), np.int32)
        for column in range(len(self.cuts) - 1, -1, -1):
            keys, cells[:, column] = np.divmod(keys, len(self.cuts[column]) - 1)
        return cells

    def within(self, first: Cells, last: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of all cells in spans, each with the row of its span."""
        sizes = (last - first + 1).astype(np.int64)
        counts = sizes.prod(axis=1)
        owner = np.repeat(np.arange(len(first)), counts)
        rest = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        cells = np.empty((len(owner), first.shape[1]), np.int32)
        for column in range(first.shape[1] - 1, -1, -1):
            rest, step = np.divmod(rest, sizes[owner, column])
            cells[:, column] = first[owner, column] + step
        return self.keys(cells), owner

    def count(self, first: Cells, last: Cells) -> float:
        """How many `within` lists."""
        return float((last - first + 1.0).prod(axis=1).sum())
