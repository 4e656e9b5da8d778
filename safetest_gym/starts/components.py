"""Which columns a condition links, and in what order a diagram reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from safetest_gym.starts.automaton import TooLargeError, build_automaton
from safetest_gym.starts.counting import Diagram, weigh
from safetest_gym.starts.diagram import Level, build_levels
from safetest_gym.starts.formula import Formula
from safetest_gym.starts.intervals import discrete, number_of_ints
from safetest_gym.starts.logic import Formulas
from safetest_gym.starts.search import MAX_STATES, Search

__all__ = ["Component", "build_diagram", "split"]

MAX_NODES = 8_000_000
"""Most nodes of one diagram; about 80 bytes each."""

_FIRST_TRY = 50_000
"""Nodes after which another order is tried first."""

_FEW = 1_000_000
"""States that are rather listed than put into a larger diagram."""

_SWEEPS = 50


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

    A set that is small although its diagram is not while it is built is listed instead.
    Use inside `deep_recursion`.

    Raises:
        TooLargeError: every order passes `MAX_NODES`, and the set is too large to be listed.
        NoValueError: a conjunct has no value in some states.
    """
    model_order, *others = _orders(component, formulas)
    orders = [*others, model_order]
    failure = TooLargeError()
    attempts: list[Callable[[], list[Level]]] = [
        lambda: _layered(component, [model_order, *others], formulas, _FIRST_TRY),
        lambda: _listed(component, formulas, _FEW),
        lambda: _layered(component, orders, formulas, MAX_NODES),
        lambda: _listed(component, formulas, MAX_STATES),
    ]
    for attempt in attempts:
        try:
            return weigh(attempt())
        except TooLargeError as error:
            failure = error
    raise failure


def _layered(
    component: Component, orders: Sequence[Sequence[int]], formulas: Formulas, max_nodes: int
) -> list[Level]:
    """Built layer by layer, in the first order that keeps it small."""
    failure = TooLargeError()
    for order in orders:
        try:
            automata = [
                build_automaton(conjunct, order, formulas) for conjunct in component.conjuncts
            ]
            return build_levels(order, automata, formulas, max_nodes)
        except TooLargeError as error:
            failure = error
    raise failure


def _listed(component: Component, formulas: Formulas, most: int) -> list[Level]:
    """Built from all states, if they are about ``most`` at most."""
    search = Search(component.columns, component.conjuncts, formulas)
    if (about := search.estimate()) > most:
        raise TooLargeError(f"about {about:.1g} states that no diagram makes small")
    return search.levels()


def _orders(component: Component, formulas: Formulas) -> list[list[int]]:
    """Orders worth a try; reals that range over intervals come last."""
    orders: list[list[int]] = []
    for order in (
        list(component.columns),
        _linked_order(component),
        sorted(component.columns, key=lambda column: number_of_ints(formulas.domains[column])),
    ):
        order.sort(
            key=lambda column: formulas.real[column] and not discrete(formulas.domains[column])
        )
        if order not in orders:
            orders.append(order)
    return orders


def _linked_order(component: Component) -> list[int]:
    """Linked columns near each other, and those that only one conjunct mentions last.

    Every column moves to the centre of gravity of its conjuncts, small ones counting more,
    until nothing moves.
    """
    scopes = [conjunct.scope for conjunct in component.conjuncts]
    mentions = Counter(column for scope in scopes for column in scope)
    alone = [column for column in component.columns if mentions[column] < 2]
    place = {column: p for p, column in enumerate(component.columns) if mentions[column] > 1}
    for _ in range(_SWEEPS):
        pull = dict.fromkeys(place, (0.0, 0.0))
        for scope in scopes:
            members = [column for column in scope if column in place]
            centre = sum(place[column] for column in members) / max(1, len(members))
            weight = 1 / max(1, len(members) - 1) ** 2
            for column in members:
                moment, mass = pull[column]
                pull[column] = (moment + weight * centre, mass + weight)
        order = sorted(place, key=lambda column: (pull[column][0] / pull[column][1], column))
        moved = {column: p for p, column in enumerate(order)}
        if moved == place:
            break
        place = moved
    return sorted(place, key=place.__getitem__) + alone
