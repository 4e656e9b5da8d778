"""Read the composition: which automata take part, and how they synchronise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safetest_gym.jani.operators import build
from safetest_gym.jani.reporting import Place, Report, Shape
from safetest_gym.jani.tree import Destination, Edge, Expression, Vector

__all__ = ["Element", "System", "input_edges", "read_elements", "read_vectors"]

_SYSTEM = Shape("a composition", ("elements",), ("syncs",))
_ELEMENT = Shape("an element", ("automaton",), ("input-enable",))
_SYNC = Shape("a synchronisation", ("synchronise",), ("result",))


@dataclass(frozen=True, slots=True)
class Element:
    """One automaton in the composition and the actions it must never block."""

    automaton: str
    input_enable: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class System:
    """The composition as far as it is read before the edges."""

    data: Mapping[str, Any]
    place: Place
    elements: tuple[Element, ...]


def read_elements(
    data: Any,
    place: Place,
    automata: Mapping[str, object],
    actions: Mapping[str, object],
    report: Report,
) -> System:
    """Read the elements; the synchronisations come later, with `read_vectors`."""
    checked = report.take_object(data, place, _SYSTEM)
    if checked is None:
        return System({}, place, ())
    at = (place, "elements")
    items = report.take_list(checked["elements"], at, "elements")
    if not items and isinstance(checked["elements"], list):
        report.add(at, "a composition needs an element")
    elements: list[Element] = []
    for index, item in enumerate(items):
        element = _read_element(item, (at, index), automata, actions, report)
        if element is not None:
            elements.append(element)
    return System(checked, place, tuple(elements))


def _read_element(
    data: Any,
    place: Place,
    automata: Mapping[str, object],
    actions: Mapping[str, object],
    report: Report,
) -> Element | None:
    checked = report.take_object(data, place, _ELEMENT)
    if checked is None:
        return None
    name = report.take_choice(checked["automaton"], (place, "automaton"), "automaton", automata)
    at = (place, "input-enable")
    enabled: dict[str, None] = {}
    for index, item in enumerate(report.take_list(checked.get("input-enable", []), at, "actions")):
        action = report.take_choice(item, (at, index), "action", actions)
        if action is not None:
            enabled[action] = None
    return None if name is None else Element(name, tuple(enabled), place)


def input_edges(
    element: Element, locations: int, edges: Sequence[Edge], report: Report
) -> tuple[Edge, ...]:
    """The self-loops that make an automaton accept its input-enabled actions everywhere."""
    guards: dict[tuple[str | None, int], list[Expression]] = {}
    for edge in edges:
        guards.setdefault((edge.action, edge.location), []).append(edge.guard)
    path = report.path((element.place, "input-enable"))
    found: list[Edge] = []
    for action in element.input_enable:
        for location in range(locations):
            guard = build("¬", (build("∨", guards.get((action, location), ())),))
            if getattr(guard, "value", None) is not False:
                stay = Destination(location, None, (), path)
                found.append(Edge(action, location, guard, (stay,), path))
    return tuple(found)


def read_vectors(
    system: System, edges: Sequence[Sequence[Edge]], actions: Mapping[str, object], report: Report
) -> tuple[Vector, ...]:
    """The synchronisation vectors; ``edges`` are those of each element.

    Without any, a lone automaton performs its labelled edges on its own, while those of
    several automata never happen.
    """
    if "syncs" not in system.data:
        if len(edges) != 1:
            return ()
        used = {edge.action for edge in edges[0]}
        return tuple([Vector((action,), action) for action in actions if action in used])
    place = (system.place, "syncs")
    vectors: list[Vector] = []
    items = report.take_list(system.data["syncs"], place, "synchronisations")
    elements = system.data["elements"]
    count = len(elements) if isinstance(elements, list) else None
    for index, item in enumerate(items):
        vector = _read_vector(item, (place, index), count, actions, report)
        if vector is not None:
            vectors.append(vector)
    return tuple(vectors)


def _read_vector(
    data: Any, place: Place, count: int | None, actions: Mapping[str, object], report: Report
) -> Vector | None:
    """A vector with ``count`` entries; None if it is not known how many there must be."""
    checked = report.take_object(data, place, _SYNC)
    if checked is None:
        return None
    at = (place, "synchronise")
    parts = report.take_list(checked["synchronise"], at, "actions")
    if count not in (None, len(parts)) and isinstance(checked["synchronise"], list):
        message = f"expected an entry for each of {count} elements, found {len(parts)}"
        report.add(at, message, "an action or null for each")
    elif parts and all(part is None for part in parts):
        report.add(at, "no element takes part in the synchronisation")
    synchronise: list[str | None] = []
    for index, part in enumerate(parts):
        action = None
        if part is not None:
            action = report.take_choice(part, (at, index), "action", actions)
        synchronise.append(action)
    result = None
    if checked.get("result") is not None:
        result = report.take_choice(checked["result"], (place, "result"), "action", actions)
    return Vector(tuple(synchronise), result)
