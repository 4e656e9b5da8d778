"""Find out why a way over cells is there, and cut the grid so that it is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.verify.boxes import BoxSystem
from safetest_gym.verify.grid import Cells, Grid
from safetest_gym.verify.intervals import Floats
from safetest_gym.verify.narrowing import Boxes

__all__ = ["Refiner", "Trace"]

_PARTS = 64
_MOST = 512
_BAD = 8
_BALANCE = 4.0


@dataclass(frozen=True, slots=True)
class Trace:
    """How far boxes from the starts come along a way, without being widened to cells.

    Attributes:
        step: the last cell they come to.
        boxes: per cell up to there, what they are in it.
        failing: they come to the end, and fail there.
    """

    step: int
    boxes: list[Boxes]
    failing: bool


class Refiner:
    """Cuts a grid.

    Args:
        starts: boxes with all start states.
    """

    def __init__(self, system: BoxSystem, grid: Grid, starts: Boxes) -> None:
        self._system, self._grid, self._starts = system, grid, starts
        self._whole = system.narrower.whole

    def follow(self, path: Cells) -> Trace:
        """Send the start boxes along a way, in small parts if as a whole they fail."""
        cells = self._grid.boxes(path)
        starts = _met(self._starts, cells, 0)
        whole = self._send(path, cells, starts)
        return self._send(path, cells, self._parts(starts)) if whole.failing else whole

    def _send(self, path: Cells, cells: Boxes, boxes: Boxes) -> Trace:
        trace = [boxes]
        for step in range(len(path) - 1):
            following = _met(self._system.images(boxes).target, cells, step + 1)
            if not len(following[0]):
                return Trace(step, trace, False)
            boxes = _fewer(following)
            trace.append(boxes)
        failing, part = self._system.can_fail(boxes)
        if failing.any():
            trace[-1] = part[0][failing], part[1][failing]
        return Trace(len(path) - 1, trace, bool(failing.any()))

    def cut(self, path: Cells, trace: Trace, reached: Boxes) -> bool:
        """Cut the grid for a way that `follow` came through or not; False if nothing helps.

        Args:
            reached: hull of all that was reached, one box.
        """
        if trace.failing:
            return self._cut_widest(path, reached)
        cell = self._grid.boxes(path[[trace.step]])
        good = trace.boxes[trace.step]
        bad = self._bad(path, trace.step)
        changed = False
        for number in range(min(_BAD, len(bad[0]))):
            column, at = self._between(good, bad, number, cell)
            if column < 0:
                continue
            if self._whole[column]:
                changed |= self._grid.add(column, at)
            elif not changed:
                changed |= self._halve(self._balanced(column, reached), reached)
        return changed or self._cut_lossy(path, trace, reached)

    def _bad(self, path: Cells, step: int) -> Boxes:
        """The parts of a cell of the way from which it goes on."""
        cells = self._grid.boxes(path)
        here = cells[0][[step]], cells[1][[step]]
        if step == len(path) - 1:
            failing, part = self._system.can_fail(here)
            return part[0][failing], part[1][failing]
        images = self._system.images(here)
        low = np.maximum(images.target[0], cells[0][step + 1])
        high = np.minimum(images.target[1], cells[1][step + 1])
        goes = (low <= high).all(axis=1)
        return images.source[0][goes], images.source[1][goes]

    def _between(self, good: Boxes, bad: Boxes, number: int, cell: Boxes) -> tuple[int, float]:
        """The variable that best tells a bad box from the good ones, and where; or -1."""
        low, high = good[0].min(axis=0), good[1].max(axis=0)
        above, below = bad[0][number] - high, low - bad[1][number]
        widths = np.maximum(cell[1][0] - cell[0][0], 1e-300)
        with np.errstate(all="ignore"):
            gaps = np.nan_to_num(np.maximum(above, below) / widths, nan=0.0, posinf=0.0)
        column = int(gaps.argmax())
        if gaps[column] <= 0:
            return -1, 0.0
        if above[column] > 0:
            return column, float(bad[0][number][column])
        return column, float(bad[1][number][column] + 1)

    def _cut_lossy(self, path: Cells, trace: Trace, reached: Boxes) -> bool:
        """Cut where being widened to the cell lost most."""
        scale = self._scale(reached)
        losses = []
        for step in range(trace.step + 1):
            cell, boxes = self._grid.boxes(path[[step]]), trace.boxes[step]
            widths = (boxes[1] - boxes[0]).max(axis=0)
            losses.append(np.nan_to_num((cell[1][0] - cell[0][0] - widths) / scale))
        order = np.argsort(-np.max(losses, axis=0), kind="stable")
        return self._first_cut(order, path, trace, reached)

    def _first_cut(
        self, order: NDArray[np.int64], path: Cells, trace: Trace, reached: Boxes
    ) -> bool:
        for column in order.tolist():
            if not self._whole[column]:
                if self._halve(column, reached):
                    return True
                continue
            boxes = trace.boxes[trace.step]
            for at in (boxes[0][:, column].min(), boxes[1][:, column].max() + 1):
                if self._grid.add(column, float(at)):
                    return True
        return False

    def _cut_widest(self, path: Cells, reached: Boxes) -> bool:
        """Halve the widest pieces on the way."""
        cells = self._grid.boxes(path)
        widths = np.nan_to_num((cells[1] - cells[0]).max(axis=0) / self._scale(reached))
        for column in np.argsort(-widths, kind="stable").tolist():
            if widths[column] > 0 and self._halve(column, reached):
                return True
        return False

    def _balanced(self, column: int, reached: Boxes) -> int:
        """The real variable itself, or one whose pieces are far wider than its own."""
        widths = np.array([np.diff(cuts).max(initial=0.0) for cuts in self._within(reached)])
        widths = np.where(self._whole, 0.0, np.nan_to_num(widths / self._scale(reached)))
        widest = int(widths.argmax())
        return widest if widths[widest] > _BALANCE * widths[column] else column

    def _within(self, reached: Boxes) -> list[Floats]:
        """The cuts among what is reached."""
        ends = zip(self._grid.cuts, reached[0][0], reached[1][0], strict=True)
        return [np.unique(np.clip(cuts, low, high)) for cuts, low, high in ends]

    def _halve(self, column: int, reached: Boxes) -> bool:
        low, high = float(reached[0][0, column]), float(reached[1][0, column])
        return self._grid.halve(column, low, high)

    def _scale(self, reached: Boxes) -> Floats:
        widths: Floats = np.maximum(reached[1][0] - reached[0][0], 1e-300)
        return widths

    def _parts(self, boxes: Boxes) -> Boxes:
        """Boxes cut in two along their widest sides until they are many."""
        low, high = boxes
        scale = np.maximum(np.nan_to_num(self._system.domain[1] - self._system.domain[0]), 1e-300)
        while 0 < len(low) <= _PARTS // 2:
            with np.errstate(all="ignore"):
                widths = np.nan_to_num((high - low) / scale)
            column = widths.argmax(axis=1)
            rows = np.arange(len(low))
            if not (widths[rows, column] > 0).any():
                break
            middle = low[rows, column] / 2 + high[rows, column] / 2
            whole = self._whole[column]
            middle = np.where(whole, np.floor(middle), middle)
            first, second = high.copy(), low.copy()
            first[rows, column] = middle
            second[rows, column] = np.where(whole, middle + 1, np.nextafter(middle, np.inf))
            low, high = np.concatenate([low, second]), np.concatenate([first, high])
            kept = (low <= high).all(axis=1)
            low, high = low[kept], high[kept]
        return low, high


def _met(boxes: Boxes, cells: Boxes, step: int) -> Boxes:
    """The parts of boxes in one of the cells."""
    low = np.maximum(boxes[0], cells[0][step])
    high = np.minimum(boxes[1], cells[1][step])
    alive = (low <= high).all(axis=1)
    return low[alive], high[alive]


def _fewer(boxes: Boxes) -> Boxes:
    """Neighbours put together while there are too many."""
    _, index = np.unique(np.concatenate(boxes, axis=1), axis=0, return_index=True)
    low, high = boxes[0][index], boxes[1][index]
    while len(low) > _MOST:
        if len(low) % 2:
            low, high = np.concatenate([low, low[-1:]]), np.concatenate([high, high[-1:]])
        low, high = np.minimum(low[::2], low[1::2]), np.maximum(high[::2], high[1::2])
    return low, high
