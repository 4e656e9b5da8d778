"""All states of a condition as one layered graph: the product of its conjuncts' automata.

A node is a state of every automaton; an edge gives a column a piece of its values. Built
layer by layer with bulk operations, nodes merged where they agree. An automaton with one
column to go only says which pieces of it are left, so it becomes a bit mask on that
column, shared with all such automata: a node dies as soon as a mask is empty, and
``x ≠ y`` for many pairs needs a node per set of values taken, not per arrangement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.starts.automaton import Automaton, TooLargeError, column_array
from safetest_gym.starts.intervals import Intervals, cut
from safetest_gym.starts.logic import Formulas

__all__ = ["Level", "NoValueError", "Row", "build_levels", "combined_keys"]

MAX_EDGES = 12_000_000
_BLOCK = 2**21
_MAX_KEY = 2**62
_MAX_BITS = 62

Row = dict[int, float]
"""Values by column."""

_Nodes = dict[int, NDArray[Any]]
"""Per automaton (0, 1, ...) its states, per column (-1, -2, ...) its mask; one entry per node.

Left out: automata that are in state 0 or done, and columns on which there is no mask yet.
"""


class NoValueError(Exception):
    """The condition has no value in some states; ``row`` is the start of one."""

    def __init__(self, row: Row) -> None:
        super().__init__("no value")
        self.row = row


@dataclass(slots=True)
class Level:
    """The edges that give one column a value.

    Attributes:
        lows, highs: ends of each piece of the column's values.
        source, piece, target: per edge, ordered by source and piece; targets are
            nodes of the next level.
        nodes: how many nodes the edges start from.
    """

    column: int
    real: bool
    lows: NDArray[Any]
    highs: NDArray[Any]
    source: NDArray[np.int32]
    piece: NDArray[np.int32]
    target: NDArray[np.int32]
    nodes: int


@dataclass(slots=True)
class _Reader:
    """An automaton at the column it reads next.

    Attributes:
        table: shape (states, pieces of the column).
        mask: per state reached, the pieces of column ``last`` it leaves; None if the
            automaton goes on as it is.
    """

    automaton: int
    table: NDArray[np.int32]
    mask: NDArray[np.int64] | None
    last: int


def build_levels(
    order: Sequence[int], automata: Sequence[Automaton], formulas: Formulas, max_nodes: int
) -> list[Level]:
    """The levels of the product, from one root to one accepting end.

    Raises:
        TooLargeError: more than ``max_nodes`` nodes, or too many edges.
        NoValueError: some path ends where a conjunct has no value.
    """
    pieces = {column: _pieces(column, automata, formulas) for column in order}
    lows = {c: column_array([low for low, _ in pieces[c]], formulas.real[c]) for c in order}
    highs = {c: column_array([high for _, high in pieces[c]], formulas.real[c]) for c in order}
    readers, nodes = _prepare(automata, lows)
    size = 1
    levels: list[Level] = []
    total = edges = 0
    for column in order:
        reading = readers.get(column, [])
        absorbed = {reader.automaton for reader in reading if reader.mask is not None}
        source, piece, changed = _expand(
            nodes, size, reading, len(lows[column]), nodes.get(-1 - column)
        )
        kept = {
            slot: values
            for slot, values in nodes.items()
            if slot != -1 - column and slot not in changed and slot not in absorbed
        }
        target, nodes, following = _merge(kept, source, changed, size)
        real = formulas.real[column]
        levels.append(Level(column, real, lows[column], highs[column], source, piece, target, size))
        size = following
        total += size
        edges += len(source)
        if total > max_nodes or edges > MAX_EDGES:
            raise TooLargeError(f"{total} nodes and {edges} edges")
    for states in nodes.values():
        raise NoValueError(_path_to(levels, int(np.argmax(states != 0))))
    return levels


def _pieces(column: int, automata: Sequence[Automaton], formulas: Formulas) -> Intervals:
    """The column's values, cut wherever an automaton may go another way."""
    starts: set[float] = set()
    for automaton in automata:
        for layer in automaton:
            if layer.column == column:
                starts.update(layer.starts.tolist())
    return cut(formulas.domains[column], starts, formulas.real[column])


def _prepare(
    automata: Sequence[Automaton], lows: Mapping[int, NDArray[Any]]
) -> tuple[dict[int, list[_Reader]], _Nodes]:
    """The readers of each column, and the root."""
    readers: dict[int, list[_Reader]] = {}
    root: _Nodes = {}
    for a, automaton in enumerate(automata):
        tables = [
            layer.table[:, np.searchsorted(layer.starts, lows[layer.column], side="right") - 1]
            for layer in automaton
        ]
        last = automaton[-1].column
        mask = _masks(tables[-1])
        if mask is not None:
            tables.pop()
            if not tables:
                root[-1 - last] = root.get(-1 - last, ~np.int64(0)) & mask[:1]
        for position, table in enumerate(tables):
            final = mask if position == len(tables) - 1 else None
            column = automaton[position].column
            readers.setdefault(column, []).append(_Reader(a, table, final, last))
    return readers, root


def _masks(table: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Per state before the last column, bits of the pieces that are accepted."""
    if table.shape[1] > _MAX_BITS or (table > 0).any():
        return None
    bits = np.left_shift(np.int64(1), np.arange(table.shape[1]))
    masks: NDArray[np.int64] = ((table >= 0) * bits).sum(axis=1)
    return masks


def _expand(
    nodes: _Nodes,
    size: int,
    readers: Sequence[_Reader],
    width: int,
    mask: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], _Nodes]:
    """Source and piece of each edge, and what changes along it."""
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], _Nodes]] = []
    edges = 0
    step = max(1, _BLOCK // width)
    for first in range(0, max(1, size), step):
        block = slice(first, min(first + step, size))
        alive = np.ones((block.stop - first, width), dtype=np.bool_)
        if mask is not None:
            alive &= (mask[block, None] >> np.arange(width)) & 1 != 0
        for reader in readers:
            if reader.automaton in nodes:
                alive &= reader.table[nodes[reader.automaton][block]] >= 0
            else:
                alive &= reader.table[0] >= 0
        source, piece = np.nonzero(alive)
        found.append(_follow(nodes, readers, source + first, piece))
        edges += len(found[-1][0])
        if edges > MAX_EDGES:
            raise TooLargeError(f"{edges} edges")
    source = np.concatenate([part[0] for part in found])
    piece = np.concatenate([part[1] for part in found])
    changed = {slot: np.concatenate([part[2][slot] for part in found]) for slot in found[0][2]}
    return source.astype(np.int32), piece.astype(np.int32), changed


def _follow(
    nodes: _Nodes,
    readers: Sequence[_Reader],
    source: NDArray[np.int64],
    piece: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], _Nodes]:
    """Edges that leave no mask empty, and the automata and masks that change along them."""
    changed: _Nodes = {}
    alive = np.ones(len(source), dtype=np.bool_)
    for reader in readers:
        a, slot = reader.automaton, -1 - reader.last
        state = nodes[a][source] if a in nodes else 0
        reached = reader.table[state, piece]
        if reader.mask is None:
            changed[a] = reached
            continue
        left = reader.mask[reached]
        if slot in changed:
            left &= changed[slot]
        elif slot in nodes:
            left &= nodes[slot][source]
        changed[slot] = left
        alive &= changed[slot] != 0
    if not alive.all():
        source, piece = source[alive], piece[alive]
        changed = {slot: values[alive] for slot, values in changed.items()}
    return source, piece, changed


def _merge(
    kept: _Nodes, source: NDArray[np.int32], changed: _Nodes, size: int
) -> tuple[NDArray[np.int32], _Nodes, int]:
    """The node each edge leads to, what the distinct nodes are, and how many."""
    same = combined_keys(list(kept.values()), size)
    keys = combined_keys([same[source], *changed.values()], len(source))
    _, index, target = np.unique(keys, return_index=True, return_inverse=True)
    nodes = {slot: values[source[index]] for slot, values in kept.items()}
    nodes |= {slot: values[index] for slot, values in changed.items()}
    nodes = {slot: values for slot, values in nodes.items() if slot < 0 or values.any()}
    return target.astype(np.int32), nodes, len(index)


def combined_keys(columns: Sequence[NDArray[Any]], size: int) -> NDArray[np.int64]:
    """A number per row of ``columns``, the same for equal rows only."""
    keys = np.zeros(size, dtype=np.int64)
    bound = 1
    for values in columns:
        if values.min(initial=0) < 0 or values.max(initial=0) > size:
            values = np.unique(values, return_inverse=True)[1]
        width = int(values.max(initial=0)) + 1
        if bound * width > _MAX_KEY:
            distinct, keys = np.unique(keys, return_inverse=True)
            bound = max(1, len(distinct))
        keys = keys * width + values
        bound *= width
    return keys


def _path_to(levels: Sequence[Level], node: int) -> Row:
    """Values that lead from the root to ``node`` after the last level."""
    row: Row = {}
    for level in reversed(levels):
        edge = int(np.argmax(level.target == node))
        row[level.column] = level.lows[level.piece[edge]].item()
        node = int(level.source[edge])
    return row
