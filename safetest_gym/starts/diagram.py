"""All states of a condition as one layered graph: the product of its conjuncts' automata.

A node is a state of every automaton; an edge gives a column a piece of its values. Built
layer by layer with bulk operations, nodes merged where all automata agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.starts.automaton import Automaton, Layer, TooLargeError, column_array
from safetest_gym.starts.intervals import cut
from safetest_gym.starts.logic import Formulas

__all__ = ["Level", "NoValueError", "Row", "build_levels"]

MAX_EDGES = 20_000_000
_BLOCK = 2**22
_MAX_KEY = 2**62

Row = dict[int, float]
"""Values by column."""


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


def build_levels(
    order: Sequence[int], automata: Sequence[Automaton], formulas: Formulas, max_nodes: int
) -> list[Level]:
    """The levels of the product, from one root to one accepting end.

    Raises:
        TooLargeError: more than ``max_nodes`` nodes, or too many edges.
        NoValueError: some path ends where a conjunct has no value.
    """
    states = np.zeros((1, len(automata)), dtype=np.int32)
    ahead = [list(automaton.layers) for automaton in automata]
    levels: list[Level] = []
    nodes = edges = 0
    for column in order:
        readers: dict[int, Layer] = {}
        for a, layers in enumerate(ahead):
            if layers and layers[0].column == column:
                readers[a] = layers.pop(0)
        level, states = _expand(column, states, readers, formulas)
        levels.append(level)
        nodes += len(states)
        edges += len(level.source)
        if nodes > max_nodes or edges > MAX_EDGES:
            raise TooLargeError(f"{nodes} nodes and {edges} edges")
    ends = np.array([automaton.accepting for automaton in automata], dtype=np.int32)
    wrong = np.flatnonzero((states != ends).any(axis=1))
    if len(wrong):
        raise NoValueError(_path_to(levels, int(wrong[0])))
    return levels


def _expand(
    column: int, states: NDArray[np.int32], readers: dict[int, Layer], formulas: Formulas
) -> tuple[Level, NDArray[np.int32]]:
    """The edges from nodes ``states``, shape (nodes, automata), and the nodes they reach."""
    real = formulas.real[column]
    starts: set[float] = set()
    for layer in readers.values():
        starts.update(layer.starts.tolist())
    pieces = cut(formulas.domains[column], starts, real)
    lows = column_array([low for low, _ in pieces], real)
    highs = column_array([high for _, high in pieces], real)
    tables = {
        a: layer.table[:, np.searchsorted(layer.starts, lows, side="right") - 1]
        for a, layer in readers.items()
    }
    sources: list[NDArray[np.int64]] = []
    taken: list[NDArray[np.int64]] = []
    found = 0
    step = max(1, _BLOCK // len(lows))
    for first in range(0, max(1, len(states)), step):
        block = states[first : first + step]
        alive = np.ones((len(block), len(lows)), dtype=np.bool_)
        for a, table in tables.items():
            alive &= table[block[:, a]] >= 0
        rows, columns = np.nonzero(alive)
        sources.append(rows + first)
        taken.append(columns)
        found += len(rows)
        if found > MAX_EDGES:
            raise TooLargeError(f"{found} edges")
    source: NDArray[np.int32] = np.concatenate(sources, dtype=np.int32)
    piece: NDArray[np.int32] = np.concatenate(taken, dtype=np.int32)
    target, following = _merge(states, source, piece, tables)
    level = Level(column, real, lows, highs, source, piece, target, len(states))
    return level, following


def _merge(
    states: NDArray[np.int32],
    source: NDArray[np.int32],
    piece: NDArray[np.int32],
    tables: dict[int, NDArray[np.int32]],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The node each edge leads to, and the distinct nodes."""
    key = np.zeros(len(source), dtype=np.int64)
    bound = 1
    for a in range(states.shape[1]):
        reached = tables[a][states[source, a], piece] if a in tables else states[source, a]
        size = int(reached.max(initial=0)) + 1
        if size == 1:
            continue
        if bound * size > _MAX_KEY:
            distinct, key = np.unique(key, return_inverse=True)
            bound = len(distinct)
        key = key * size + reached
        bound *= size
    _, index, target = np.unique(key, return_index=True, return_inverse=True)
    following = states[source[index]]
    for a, table in tables.items():
        following[:, a] = table[following[:, a], piece[index]]
    return target.astype(np.int32), following


def _path_to(levels: Sequence[Level], node: int) -> Row:
    """Values that lead from the root to ``node`` after the last level."""
    row: Row = {}
    for level in reversed(levels):
        edge = int(np.argmax(level.target == node))
        row[level.column] = level.lows[level.piece[edge]].item()
        node = int(level.source[edge])
    return row
