"""Which columns a condition links, and in what order a diagram reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from safetest_gym.starts.automaton import TooLargeError, build_automaton
from safetest_gym.starts.counting import Diagram, weigh
from safetest_gym.starts.diagram import build_levels
from safetest_gym.starts.formula import Formula
from safetest_gym.starts.intervals import discrete, number_of_ints
from safetest_gym.starts.logic import Formulas

__all__ = ["Component", "build_diagram", "split"]

MAX_NODES = 2_000_000
_FIRST_TRY = 50_000
"""Nodes after which another order is tried first."""


@dataclass(frozen=True, slots=True)
class Component:
    """Columns that are independent of all others, and the conjuncts over them."""

    columns: tuple[int, ...]
    conjuncts: tuple[Formula, ...]


def split(columns: Sequence[int], conjuncts: Sequence[Formula]) -> list[Component]:
    """The smallest components; columns that no conjunct mentions together in one."""
    leader = {column: column for column in columns}

    def find(column: int) -> int:
        while leader[column] != column:
            leader[column] = leader[leader[column]]
            column = leader[column]
        return column

    for conjunct in conjuncts:
        first, *others = sorted(conjunct.scope)
        for other in others:
            leader[find(other)] = find(first)
    groups: dict[int, list[int]] = {}
    linked = {column for conjunct in conjuncts for column in conjunct.scope}
    for column in columns:
        groups.setdefault(find(column) if column in linked else -1, []).append(column)
    owned: dict[int, list[Formula]] = {group: [] for group in groups}
    for conjunct in conjuncts:
        owned[find(min(conjunct.scope))].append(conjunct)
    return [Component(tuple(groups[group]), tuple(owned[group])) for group in groups]


def build_diagram(component: Component, formulas: Formulas) -> Diagram:
    """The diagram of ``component``, in the first order of columns that keeps it small.

    Use inside `deep_recursion`.

    Raises:
        TooLargeError: every order passes `MAX_NODES`.
        NoValueError: a conjunct has no value in some states.
    """
    failure = TooLargeError()
    for max_nodes in (_FIRST_TRY, MAX_NODES):
        for order in _orders(component, formulas):
            try:
                automata = [
                    build_automaton(conjunct, order, formulas) for conjunct in component.conjuncts
                ]
                return weigh(build_levels(order, automata, formulas, max_nodes))
            except TooLargeError as error:
                failure = error
    raise failure


def _orders(component: Component, formulas: Formulas) -> Iterator[list[int]]:
    """Orders worth a try; reals that range over intervals come last."""
    seen: list[list[int]] = []
    for order in (
        list(component.columns),
        _linked_order(component),
        sorted(component.columns, key=lambda column: number_of_ints(formulas.domains[column])),
    ):
        order.sort(
            key=lambda column: formulas.real[column] and not discrete(formulas.domains[column])
        )
        if order not in seen:
            seen.append(order)
            yield order


def _linked_order(component: Component) -> list[int]:
    """Greedy: next the column that leaves the fewest columns waiting in open conjuncts."""
    remaining = set(component.columns)
    order: list[int] = []
    scopes = [set(conjunct.scope) for conjunct in component.conjuncts]
    opened: set[int] = set()
    while remaining:
        best = min(remaining, key=lambda column: (_waiting(column, scopes, opened), column))
        for c, scope in enumerate(scopes):
            if best in scope:
                scope.discard(best)
                opened.add(c)
        remaining.discard(best)
        order.append(best)
    return order


def _waiting(column: int, scopes: Sequence[set[int]], opened: set[int]) -> int:
    waiting: set[int] = set()
    for c, scope in enumerate(scopes):
        if c in opened or column in scope:
            waiting |= scope
    waiting.discard(column)
    return len(waiting)
