"""One conjunct of a condition as an automaton that reads the columns in order.

Its states are what is left of the conjunct, merged where equal; a table per column says
where each class of values leads. Dead states are cut off and states with the same future
merged, so the automaton is the smallest for its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.starts.formula import FALSE, TRUE, Column, Comparison, Formula, Sum
from safetest_gym.starts.intervals import Intervals, cut, discrete, number_of_ints
from safetest_gym.starts.logic import Formulas
from safetest_gym.starts.residual import Restriction, breakpoints

__all__ = ["Automaton", "Layer", "TooLargeError", "build_automaton", "column_array"]

MAX_WORK = 1_000_000
"""Most nodes of a condition that are rebuilt, one by one, in all orders tried together."""

MAX_VALUES = 2**16
"""Most values of a column in a sum that are tried one by one."""

MAX_MERGED = 2**21
"""Larger tables are not searched for states with the same future."""

MAX_TABLE = 2**24
"""Most (state, piece) pairs of one layer."""


class TooLargeError(Exception):
    """An automaton or diagram passes its budget with this order of columns."""


@dataclass(slots=True)
class Layer:
    """What reading one column does.

    Attributes:
        starts: where each piece of the column's values begins, ascending.
        table: shape (states, pieces): next state, or -1 where the conjunct is false.
    """

    column: int
    starts: NDArray[Any]
    table: NDArray[np.int32]


Automaton = list[Layer]
"""In the order of columns. A run starts in state 0; it ends in 0 where the conjunct holds,
in 1 where it has no value."""


def build_automaton(formula: Formula, order: Sequence[int], formulas: Formulas) -> Automaton:
    """The automaton of ``formula``, which mentions at least one column of ``order``.

    Use inside `deep_recursion`.

    Raises:
        TooLargeError: another order may do.
    """
    columns = [column for column in order if column in formula.scope]
    layers = _linear_layers(formula, columns, formulas)
    if layers is None:
        layers = _general_layers(formula, columns, formulas)
    _minimise(layers)
    return layers


def column_array(values: Sequence[float], real: bool) -> NDArray[Any]:
    """Values of one column, in its type."""
    return np.array(values, dtype=np.float64 if real else np.int64)


def _general_layers(formula: Formula, columns: Sequence[int], formulas: Formulas) -> Automaton:
    states: list[Formula] = [formula]
    layers: list[Layer] = []
    for column in columns:
        pieces = _pieces(states, column, formulas)
        table = np.empty((len(states), len(pieces)), dtype=np.int32)
        following: dict[Formula, int] = {TRUE: 0} if column == columns[-1] else {}
        for p, (low, _) in enumerate(pieces):
            restriction = Restriction(formulas, column, low)
            for s, state in enumerate(states):
                left = restriction.formula(state)
                known = -1 if left is FALSE else following.setdefault(left, len(following))
                table[s, p] = known
            formulas.work += len(states) // 8
            if formulas.work > MAX_WORK:
                raise TooLargeError(f"{formulas.work} steps of simplification")
        starts = column_array([low for low, _ in pieces], formulas.real[column])
        layers.append(Layer(column, starts, table))
        states = list(following)
    return layers


def _pieces(states: Sequence[Formula], column: int, formulas: Formulas) -> Intervals:
    """The column's values, cut where any of ``states`` may behave differently."""
    domain, real = formulas.domains[column], formulas.real[column]
    starts = breakpoints(states, column, real)
    if starts is not None:
        return cut(domain, starts, real)
    if real:
        assert discrete(domain), "a condition that is not on intervals of a real"
        return domain
    if number_of_ints(domain) * len(states) > MAX_WORK:
        raise TooLargeError("a variable with too many values to try")
    values: list[tuple[float, float]] = []
    for low, high in domain:
        values.extend((value, value) for value in range(int(low), int(high) + 1))
    return tuple(values)


def _linear_layers(
    formula: Formula, columns: Sequence[int], formulas: Formulas
) -> Automaton | None:
    """The same for one linear comparison of ints, whose states are partial sums."""
    if not isinstance(formula, Comparison) or not formula.right.integer:
        return None
    number = formula.left
    if not isinstance(number, Sum):
        return None
    factors = {term.column: c for term, c in number.terms if isinstance(term, Column)}
    if len(factors) < len(number.terms) or max(-number.low, number.high) >= 2**61:
        return None
    if any(number_of_ints(formulas.domains[column]) > MAX_VALUES for column in columns):
        return None
    values = {column: _values(column, formulas) for column in columns}
    low, high = number.low - number.constant, number.high - number.constant
    states = np.array([number.constant], dtype=np.int64)
    layers: list[Layer] = []
    for column in columns:
        steps = values[column] * factors[column]
        low, high = low - int(steps.min()), high - int(steps.max())
        if len(states) * len(steps) > MAX_TABLE:
            raise TooLargeError("a sum with too many partial sums")
        sums = states[:, None] + steps[None, :]
        alive, merged = _merge_sums(formula.symbol, sums, int(low), int(high))
        states, which = _distinct(merged)
        table = np.where(alive, which, -1).astype(np.int32)
        layers.append(Layer(column, values[column], table))
    return layers


def _values(column: int, formulas: Formulas) -> NDArray[np.int64]:
    domain = formulas.domains[column]
    return np.concatenate([np.arange(low, high + 1, dtype=np.int64) for low, high in domain])


def _merge_sums(
    symbol: str, sums: NDArray[np.int64], low: int, high: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which partial sums can still end well, and one number for all that surely do.

    ``low`` and ``high`` bound what the remaining columns add.
    """
    if symbol == "≤":
        return sums + low <= 0, np.maximum(sums, -high)
    possible = (sums + low <= 0) & (sums + high >= 0)
    if symbol == "=":
        return possible, np.where(possible, sums, 0)
    merged = np.where(possible, sums, -high - 1)
    return np.ones(sums.shape, dtype=np.bool_) if low < high else sums != 0, merged


def _distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values, ascending, and for each value which of them it is."""
    least = int(values.min())
    spread = int(values.max()) - least + 1
    if spread > 4 * values.size + 1024:
        states, inverse = np.unique(values, return_inverse=True)
        return states, inverse.reshape(values.shape)
    present = np.zeros(spread, dtype=np.bool_)
    present[values - least] = True
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[values - least]


def _minimise(layers: list[Layer]) -> None:
    """Cut off states without a future and merge those with the same one, in place."""
    renamed: NDArray[np.int32] | None = None
    for position in range(len(layers) - 1, -1, -1):
        layer = layers[position]
        table = layer.table if renamed is None else renamed[layer.table]
        kept = np.flatnonzero((table >= 0).any(axis=1))
        renamed = np.full(len(table) + 1, -1, dtype=np.int32)  # the last is for -1
        table = table[kept] if len(kept) else np.full((1, table.shape[1]), -1, dtype=np.int32)
        if len(kept) > 1 and table.size <= MAX_MERGED:
            table, number = np.unique(table, axis=0, return_inverse=True)
            renamed[kept] = number.reshape(-1)
        else:
            renamed[kept] = np.arange(len(kept))
        changes = np.ones(table.shape[1], dtype=np.bool_)
        changes[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
        layers[position] = Layer(layer.column, layer.starts[changes], table[:, changes])
