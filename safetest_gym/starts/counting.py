"""Exact counts, uniform draws and lists of the paths of a diagram.

A path's weight is the number of states it stands for. Where columns are real it is a
volume, and paths of less than the greatest dimension weigh nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import StartError
from safetest_gym.starts.diagram import Level

__all__ = ["Diagram", "weigh"]

_BLOCK = 2**16
_WIDEST = 2.0**32


@cache
def _paths() -> Any:
    """The kernel, loaded when it is needed: numba takes its time."""
    return import_module("safetest_gym.engine.kernels.paths")


@dataclass(slots=True)
class _Draw:
    """One level, ready for sampling and listing: only edges that carry weight.

    Attributes:
        first: per node, its first edge; one entry more than nodes.
        low, high: per edge, the values.
        shares: per edge, running total of the integer shares of all edges so far.
        begin: per node, that total before its first edge; one entry more than nodes.
        certain: no node has two edges.
    """

    column: int
    real: bool
    first: NDArray[np.int64]
    low: NDArray[Any]
    high: NDArray[Any]
    target: NDArray[np.int32]
    shares: NDArray[np.int64]
    begin: NDArray[np.int64]
    certain: bool


@dataclass(frozen=True, slots=True)
class _Flat:
    """All levels one after the other; see `paths_kernel`.

    Attributes:
        numbers: uniform numbers per state.
        exact: no choice among so many integers that a uniform number would prefer some.
    """

    levels: NDArray[np.uint64]
    nodes: tuple[NDArray[np.uint64], NDArray[np.int64]]
    edges: tuple[NDArray[Any], NDArray[Any], NDArray[np.uint64], NDArray[np.int64]]
    numbers: int
    exact: bool


@dataclass(slots=True)
class Diagram:
    """Weighed paths over some columns.

    Attributes:
        count: number of states, None if infinite.
        dimension: how many columns range over intervals of reals.
        nodes: size, for reports.
    """

    draws: list[_Draw]
    count: int | None
    dimension: int
    nodes: int
    _flat: _Flat | None = None

    def sample(self, out: NDArray[Any], rng: np.random.Generator) -> None:
        """Fill the diagram's columns of ``out``, shape (n, V), row by row at random."""
        if not self.draws:
            return
        if self._flat is None or self._flat.edges[0].dtype != out.dtype:
            self._flat = _flatten(self.draws, out.dtype)
        flat = self._flat
        for begin in range(0, len(out), _BLOCK):
            block = out[begin : begin + _BLOCK]
            if flat.exact:
                uniforms = rng.random((len(block), flat.numbers))
                _paths().paths_kernel(flat.levels, flat.nodes, flat.edges, uniforms, block)
                continue
            node = np.zeros(len(block), dtype=np.int32)
            for draw in self.draws:
                edge = _draw_edges(draw, node, rng)
                block[:, draw.column] = _draw_values(draw, edge, rng)
                node = draw.target[edge]

    def enumerate(self) -> dict[int, NDArray[Any]]:
        """The columns of all states, in lexicographic order as the diagram reads them."""
        node = np.zeros(1, dtype=np.int32)
        steps: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        for draw in self.draws:
            parent, edge = _fan_out(draw.first[node], draw.first[node + 1])
            if draw.real:
                steps.append((parent, draw.low[edge]))
            else:
                again, value = _fan_out(draw.low[edge], draw.high[edge] + 1)
                parent, edge = parent[again], edge[again]
                steps.append((parent, value))
            node = draw.target[edge]
        columns: dict[int, NDArray[Any]] = {}
        at = np.arange(len(node))
        for draw, (parent, value) in zip(reversed(self.draws), reversed(steps), strict=True):
            columns[draw.column] = value[at]
            at = parent[at]
        return columns


def weigh(levels: list[Level]) -> Diagram:
    """Count the paths of ``levels`` backwards and keep what carries weight.

    Empties ``levels``, which may be large.
    """
    any_real = any(level.real for level in levels)
    exact = 1
    for level in levels:
        if not level.real:
            exact *= sum(high - low + 1 for low, high in _pairs(level))
    kind = np.dtype(np.float64 if any_real else np.int64 if exact < 2**62 else object)
    weight = np.ones(1, dtype=kind)
    dimension = np.zeros(1, dtype=np.int64)
    draws: list[_Draw] = []
    nodes = 1
    while levels:
        level = levels.pop()
        size, extent = _sizes(level, kind)
        edge = size[level.piece] * weight[level.target]
        reach = extent[level.piece] + dimension[level.target]
        if any_real:
            dimension = _greatest(level, reach, edge != 0)
            edge = np.where(reach == dimension[level.source], edge, 0.0)
        else:
            dimension = np.zeros(level.nodes, dtype=np.int64)
        weight = _totals(level, edge)
        draws.append(_keep(level, edge, weight))
        nodes += level.nodes
    draws.reverse()
    total = weight[0]
    if any_real and not math.isfinite(total):
        raise StartError("the start states' volume is beyond the reals; give smaller bounds")
    count = None if dimension[0] > 0 else int(total)
    return Diagram(draws, count, int(dimension[0]), nodes)


def _flatten(draws: list[_Draw], dtype: np.dtype[Any]) -> _Flat:
    levels = np.zeros((len(draws), 7), dtype=np.uint64)
    nodes = edges = numbers = 0
    exact = True
    for level, draw in zip(levels, draws, strict=True):
        level[:4] = draw.column, draw.real, nodes, edges
        nodes += len(draw.first)
        edges += len(draw.low)
        if not draw.certain:
            level[4], numbers = numbers, numbers + 1
        level[6] = int(np.diff(draw.first).max() - 1).bit_length()
        wide = draw.low < draw.high
        if wide.any():
            level[5], numbers = numbers, numbers + 1
            sizes = draw.high[wide].astype(np.float64) - draw.low[wide]
            exact &= draw.real or bool(sizes.max() < _WIDEST)
    return _Flat(
        levels,
        (_joined([d.first for d in draws]).astype(np.uint64), _joined([d.begin for d in draws])),
        (
            _joined([d.low for d in draws]).astype(dtype),
            _joined([d.high for d in draws]).astype(dtype),
            _joined([d.target for d in draws]).astype(np.uint64),
            _joined([np.concatenate([d.begin[:1], d.shares[:-1]]) for d in draws]),
        ),
        numbers,
        exact,
    )


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts)


def _pairs(level: Level) -> list[tuple[int, int]]:
    return list(zip(level.lows.tolist(), level.highs.tolist(), strict=True))


def _sizes(level: Level, kind: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Per piece, its size, and whether that is a length."""
    if level.real:
        length = level.highs - level.lows
        extent = (length > 0).astype(np.int64)
        return np.where(length > 0, length, 1.0), extent
    sizes = [high - low + 1 for low, high in _pairs(level)]
    return np.array(sizes, dtype=kind), np.zeros(len(sizes), dtype=np.int64)


def _greatest(
    level: Level, reach: NDArray[np.int64], useful: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Per node, the greatest dimension of its edges."""
    dimension = np.zeros(level.nodes, dtype=np.int64)
    np.maximum.at(dimension, level.source[useful], reach[useful])
    return dimension


def _totals(level: Level, edge: NDArray[Any]) -> NDArray[Any]:
    """Per node, the sum over its edges; exact for ints."""
    if edge.dtype == np.float64:
        return np.bincount(level.source, weights=edge, minlength=level.nodes)
    running = np.concatenate([np.zeros(1, dtype=edge.dtype), np.cumsum(edge)])
    first = np.searchsorted(level.source, np.arange(level.nodes + 1))
    result: NDArray[Any] = running[first[1:]] - running[first[:-1]]
    return result


def _keep(level: Level, edge: NDArray[Any], weight: NDArray[Any]) -> _Draw:
    useful = np.flatnonzero(edge != 0)
    source, piece = level.source[useful], level.piece[useful]
    share = (edge[useful] / weight[source]).astype(np.float64)
    bits = 62 - level.nodes.bit_length()
    first = np.searchsorted(source, np.arange(level.nodes + 1))
    shares = np.cumsum(np.ldexp(share, bits).astype(np.int64))
    return _Draw(
        column=level.column,
        real=level.real,
        first=first,
        low=level.lows[piece],
        high=level.highs[piece],
        target=level.target[useful],
        shares=shares,
        begin=np.concatenate([np.zeros(1, dtype=np.int64), shares])[first],
        certain=bool((np.diff(first) <= 1).all()),
    )


def _draw_edges(
    draw: _Draw, node: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One edge of each ``node``, by weight."""
    if draw.certain:
        return draw.first[node]
    low = draw.begin[node]
    width = draw.begin[node + 1] - low
    at = low + np.minimum((rng.random(len(node)) * width).astype(np.int64), width - 1)
    edge: NDArray[np.int64] = np.searchsorted(draw.shares, at, side="right")
    return edge


def _draw_values(draw: _Draw, edge: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
    """A value of each ``edge``, uniformly."""
    low, high = draw.low[edge], draw.high[edge]
    if draw.real:
        inside: NDArray[Any] = np.minimum(low + rng.random(len(edge)) * (high - low), high)
        return inside
    wide = np.flatnonzero(low < high)
    if len(wide):
        low[wide] = rng.integers(low[wide], high[wide], endpoint=True)
    return low


def _fan_out(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All numbers of each half-open range in turn, with the range they come from."""
    size = end - begin
    origin = np.repeat(np.arange(len(size)), size)
    running = np.cumsum(size) - size
    return origin, np.arange(len(origin)) - running[origin] + begin[origin]
