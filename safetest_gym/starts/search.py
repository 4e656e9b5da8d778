"""All states of a condition over ints one by one, and a diagram of them.

For conditions whose diagram is too large while it is built although few states satisfy
them, such as arrangements without cycles: boxes are made smaller by what the condition says
of their bounds, split, and so on, until each is one state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.starts.automaton import TooLargeError
from safetest_gym.starts.bulk import holds_in
from safetest_gym.starts.diagram import Level, combined_keys
from safetest_gym.starts.formula import Formula, Inside
from safetest_gym.starts.intervals import Intervals, number_of_ints
from safetest_gym.starts.logic import Formulas
from safetest_gym.starts.propagation import Boxes, largest

__all__ = ["MAX_STATES", "Search"]

MAX_STATES = 4_000_000
MAX_BOXES = 8_000_000
"""Boxes that are looked at; some ten microseconds each."""

MAX_WIDTH = 2**20
"""Values of a column that is split."""

_BLOCK = 2**15
_PROBED = 512
_PIECES = 16
_ROUNDS = 100

_Box = tuple[NDArray[Any], NDArray[Any]]


class Search:
    """The states over some columns that satisfy all of some conjuncts.

    Use inside `deep_recursion`.

    Raises:
        TooLargeError: the conjuncts are not about small ints alone.
    """

    def __init__(
        self, columns: Sequence[int], conjuncts: Sequence[Formula], formulas: Formulas
    ) -> None:
        conjuncts = [*conjuncts, *_gaps(columns, formulas)]
        size = largest(conjuncts)
        wide = any(_width(formulas.domains[column]) > MAX_WIDTH for column in columns)
        if wide or size is None:
            raise TooLargeError("not about small ints alone")
        self._conjuncts = conjuncts
        self._order = _split_order(columns, conjuncts, formulas)
        self._root = _whole(columns, formulas, size), list(columns)

    def estimate(self) -> float:
        """How many states there are, about: all of a random part of the boxes, scaled up."""
        rng = np.random.default_rng(0)
        parts, share, total = [self._root], 1.0, 0.0
        while parts:
            box = _joined([_settled(box, changed, self._conjuncts) for box, changed in parts])
            found, rest = self._judged(box)
            total += len(found) * share
            parts = _split(rest, self._order)
            boxes = sum(low.shape[1] for (low, _), _ in parts)
            if boxes > _PROBED:
                low, high = _joined([box for box, _ in parts])
                chosen = rng.choice(boxes, _PROBED, replace=False)
                every = sorted({column for _, changed in parts for column in changed})
                parts = [((low[:, chosen], high[:, chosen]), every)]
                share *= boxes / _PROBED
        return total

    def levels(self) -> list[Level]:
        """The levels of a diagram of them.

        Raises:
            TooLargeError: there are too many, or they are too hard to find.
        """
        stack = [self._root]
        found: list[NDArray[Any]] = []
        boxes = states = 0
        while stack:
            box = _settled(*stack.pop(), self._conjuncts)
            boxes += box[0].shape[1]
            sure, rest = self._judged(box)
            found.append(sure[:, self._order])
            states += len(sure)
            stack += _split(rest, self._order)
            if states > MAX_STATES or boxes > MAX_BOXES:
                raise TooLargeError(f"{states} states found in {boxes} boxes")
        return _levels(np.concatenate(found), self._order)

    def _judged(self, box: _Box) -> tuple[NDArray[Any], _Box]:
        """The states among boxes, and the boxes of several."""
        low, high = box
        single = (low == high).all(axis=0)
        sure = low[:, single].T
        holds = np.ones(len(sure), dtype=np.bool_)
        for conjunct in self._conjuncts:
            holds &= holds_in(conjunct, sure)
        return sure[holds], (low[:, ~single], high[:, ~single])


def _split_order(
    columns: Sequence[int], conjuncts: Sequence[Formula], formulas: Formulas
) -> list[int]:
    """The columns of most conjuncts first, among them those of fewest values."""
    return sorted(
        columns,
        key=lambda column: (
            -sum(column in conjunct.scope for conjunct in conjuncts),
            number_of_ints(formulas.domains[column]),
            column,
        ),
    )


def _width(domain: Intervals) -> float:
    return domain[-1][1] - domain[0][0] + 1


def _gaps(columns: Sequence[int], formulas: Formulas) -> Iterator[Formula]:
    """What boxes do not say of the columns' values; formulas leave it out."""
    for column in columns:
        domain = formulas.domains[column]
        if len(domain) > 1:
            yield Inside(column, domain, frozenset((column,)), -1 - column)


def _whole(columns: Sequence[int], formulas: Formulas, size: int) -> _Box:
    """One box of all values, in a type that has room; columns that do not matter are 0."""
    kind = next(t for t in (np.int16, np.int32, np.int64) if size < np.iinfo(t).max // 8)
    low = np.zeros((len(formulas.domains), 1), dtype=kind)
    high = low.copy()
    for column in columns:
        low[column] = formulas.domains[column][0][0]
        high[column] = formulas.domains[column][-1][1]
    return low, high


def _settled(box: _Box, changed: Collection[int], conjuncts: Sequence[Formula]) -> _Box:
    """Boxes that nothing makes smaller any more, without those that are empty.

    Args:
        changed: columns that are smaller than when the conjuncts were last used.
    """
    done: list[_Box] = []
    low, high = box
    for _ in range(_ROUNDS):
        boxes = Boxes(low.copy(), high.copy())
        for conjunct in conjuncts:
            if not conjunct.scope.isdisjoint(changed):
                boxes.require(conjunct)
        differs = ((boxes.low != low) | (boxes.high != high)) & boxes.alive
        again = differs.any(axis=0)
        same = boxes.alive & ~again
        done.append((low[:, same], high[:, same]))
        low, high = boxes.low[:, again], boxes.high[:, again]
        changed = np.flatnonzero(differs.any(axis=1)).tolist()
        if not changed:
            break
    return _joined([*done, (low, high)])


def _joined(boxes: Sequence[_Box]) -> _Box:
    return (
        np.concatenate([low for low, _ in boxes], axis=1),
        np.concatenate([high for _, high in boxes], axis=1),
    )


def _split(box: _Box, order: Sequence[int]) -> list[tuple[_Box, list[int]]]:
    """Each box by the values, or ranges, of its first column that has several, in blocks."""
    low, high = box
    parts: list[tuple[_Box, list[int]]] = []
    for column in order:
        several = low[column] < high[column]
        if not several.any():
            continue
        lows, highs = low[:, several], high[:, several]
        widths = highs[column].astype(np.int64) - lows[column] + 1
        pieces = np.minimum(widths, _PIECES)
        owner = np.repeat(np.arange(len(pieces)), pieces)
        piece = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        least, widths, pieces = lows[column, owner], widths[owner], pieces[owner]
        lows, highs = lows[:, owner], highs[:, owner]
        lows[column] = least + piece * widths // pieces
        highs[column] = least + (piece + 1) * widths // pieces - 1
        for first in range(0, len(owner), _BLOCK):
            block = slice(first, first + _BLOCK)
            parts.append(((lows[:, block], highs[:, block]), [column]))
        low, high = low[:, ~several], high[:, ~several]
    return parts


def _levels(states: NDArray[np.int64], order: Sequence[int]) -> list[Level]:
    """The smallest layered graph whose paths are these states.

    Args:
        states: shape (n, columns), distinct, in the order of ``order``.
    """
    states = states[np.lexsort(states.T[::-1])]
    fresh = np.zeros(len(states), dtype=np.bool_)
    fresh[:1] = True
    starts = [np.flatnonzero(fresh)]  # of each prefix of 0, 1, ... columns its first state
    for values in states.T:
        fresh[1:] |= values[1:] != values[:-1]
        starts.append(np.flatnonzero(fresh))
    levels: list[Level] = []
    following = np.zeros(len(states), dtype=np.int64)
    for depth in range(len(order) - 1, -1, -1):
        first, edges = starts[depth], starts[depth + 1]
        names, piece = np.unique(states[edges, depth], return_inverse=True)
        node = _alike(first, edges, piece, following)
        kept, one = np.unique(node, return_index=True)
        source = np.searchsorted(first, edges, side="right") - 1
        rename = np.empty(len(first), dtype=np.int64)
        rename[one] = kept
        rows = np.flatnonzero(np.isin(source, one))
        rows = rows[np.lexsort((piece[rows], rename[source[rows]]))]
        levels.append(
            Level(
                column=order[depth],
                real=False,
                lows=names,
                highs=names,
                source=rename[source[rows]].astype(np.int32),
                piece=piece[rows].astype(np.int32),
                target=following[rows].astype(np.int32),
                nodes=max(1, len(kept)),
            )
        )
        following = node
    levels.reverse()
    return levels


def _alike(
    first: NDArray[np.int64],
    edges: NDArray[np.int64],
    piece: NDArray[np.int64],
    following: NDArray[np.int64],
) -> NDArray[np.int64]:
    """A number per prefix, the same for equal edges only."""
    begin = np.searchsorted(edges, first)
    degree = np.diff(np.append(begin, len(edges)))
    keys = degree.astype(np.int64)
    width = int(following.max(initial=0)) + 1
    label = piece * width + following
    for place in range(int(degree.max(initial=0))):
        there = degree > place
        at = np.where(there, label[np.minimum(begin + place, len(edges) - 1)] + 1, 0)
        keys = np.unique(combined_keys([keys, at], len(first)), return_inverse=True)[1]
    return np.unique(keys, return_inverse=True)[1]
