"""Read the edges of an automaton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safetest_gym.jani.expressions import EXPRESSION, Reader
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote
from safetest_gym.jani.tree import (
    TRUE,
    Assignment,
    Destination,
    Edge,
    Expression,
    Literal,
    Variable,
)

__all__ = ["EdgeContext", "read_edges"]

TOLERANCE = 1e-6
"""How far the constant probabilities of an edge may be from 1 together."""

_EDGE = Shape("an edge", ("location", "destinations"), ("action", "guard", "rate", "priority"))
_DESTINATION = Shape("a destination", ("location",), ("probability", "assignments"))
_ASSIGNMENT = Shape("an assignment", ("ref", "value"), ("index",))
_UNSUPPORTED = {
    "rate": "rates (continuous time) are not supported",
    "priority": "edge-priorities are not supported",
}


@dataclass(frozen=True, slots=True)
class EdgeContext:
    """What the edges of one automaton may refer to.

    Attributes:
        conditions: reads guards and probabilities.
        values: reads assigned values.
        assignable: variables that may be assigned, by name; None for those with errors.
        deterministic: an edge has one destination only (model type lts).
    """

    conditions: Reader
    values: Reader
    locations: Mapping[str, int]
    actions: Mapping[str, object]
    assignable: Mapping[str, Variable | None]
    deterministic: bool

    @property
    def report(self) -> Report:
        """Where errors go."""
        return self.conditions.report


def read_edges(data: Any, place: Place, context: EdgeContext) -> tuple[Edge, ...]:
    """All edges without errors; errors are reported."""
    edges: list[Edge] = []
    path = context.report.path(place)
    for index, item in enumerate(context.report.take_list(data, place, "edges")):
        edge = _read_edge(item, (place, index), f"{path}[{index}]", context)
        if edge is not None:
            edges.append(edge)
    return tuple(edges)


def _read_edge(data: Any, place: Place, path: str, context: EdgeContext) -> Edge | None:
    report = context.report
    checked = report.take_object(data, place, _EDGE)
    if checked is None:
        return None
    for key, message in _UNSUPPORTED.items():
        if key in checked:
            report.add((place, key), message)
    location = report.take_choice(
        checked["location"], (place, "location"), "location", context.locations
    )
    action = None
    if "action" in checked:
        action = report.take_choice(checked["action"], (place, "action"), "action", context.actions)
    guard: Expression | None = TRUE
    if "guard" in checked:
        guard = _expression(checked["guard"], (place, "guard"), context.conditions, "bool")
    destinations = _destinations(
        checked["destinations"], (place, "destinations"), f"{path}.destinations", context
    )
    if location is None or guard is None or destinations is None:
        return None
    index = context.locations[location]
    return Edge(action, index, guard, destinations, path)


def _expression(data: Any, place: Place, reader: Reader, kind: Any) -> Expression | None:
    checked = reader.report.take_object(data, place, EXPRESSION)
    return None if checked is None else reader.read(checked["exp"], (place, "exp"), kind)


def _destinations(
    data: Any, place: Place, path: str, context: EdgeContext
) -> tuple[Destination, ...] | None:
    report = context.report
    items = report.take_list(data, place, "destinations")
    found: list[Destination] = []
    for index, item in enumerate(items):
        destination = _destination(item, (place, index), f"{path}[{index}]", context)
        if destination is not None:
            found.append(destination)
    if not isinstance(data, list) or len(found) < len(items):
        return None
    if not items:
        report.add(place, "an edge needs a destination")
    elif context.deterministic and len(items) > 1:
        hint = "use type mdp for probabilities, several edges for choices"
        report.add(place, "in a model of type lts an edge has one destination", hint)
    elif context.deterministic and not isinstance(found[0].probability, Literal | None):
        report.add(place, "in a model of type lts nothing is random", "use type mdp")
    else:
        _check_sum(found, place, report)
    return tuple(found)


def _check_sum(destinations: list[Destination], place: Place, report: Report) -> None:
    total, complete = 0.0, True
    for destination in destinations:
        probability = destination.probability
        if probability is None:
            total += 1.0
        elif isinstance(probability, Literal):
            total += probability.value
        else:
            complete = False
    if total > 1 + TOLERANCE or (complete and total < 1 - TOLERANCE):
        at_least = "" if complete else "at least "
        hint = "" if len(destinations) > 1 else "leave it out if it is 1"
        report.add(place, f"the probabilities add up to {at_least}{total:.9g}, not 1", hint)


def _destination(data: Any, place: Place, path: str, context: EdgeContext) -> Destination | None:
    report = context.report
    checked = report.take_object(data, place, _DESTINATION)
    if checked is None:
        return None
    location = report.take_choice(
        checked["location"], (place, "location"), "location", context.locations
    )
    before = len(report)
    probability = None
    if "probability" in checked:
        at = (place, "probability")
        probability = _probability(checked["probability"], at, context.conditions)
    assignments: tuple[Assignment, ...] = ()
    if "assignments" in checked:
        at = (place, "assignments")
        assignments = _assignments(checked["assignments"], at, f"{path}.assignments", context)
    if location is None or len(report) > before:
        return None
    index = context.locations[location]
    return Destination(index, probability, assignments, path)


def _probability(data: Any, place: Place, reader: Reader) -> Expression | None:
    node = _expression(data, place, reader, "real")
    if isinstance(node, Literal):
        if not 0 <= node.value <= 1:
            message = f"a probability is between 0 and 1, this is {describe(node.value)}"
            reader.report.add((place, "exp"), message)
        elif node.value == 1:
            return None
    return node


def _assignments(
    data: Any, place: Place, path: str, context: EdgeContext
) -> tuple[Assignment, ...]:
    found: list[Assignment] = []
    taken: set[tuple[Variable, int]] = set()
    report = context.report
    for number, item in enumerate(report.take_list(data, place, "assignments")):
        at = (place, number)
        assignment = _assignment(item, at, f"{path}[{number}]", context)
        if assignment is None:
            continue
        target = (assignment.variable, assignment.index)
        if target in taken:
            name = quote(item["ref"])
            hint = "give one of them another 'index'"
            report.add((at, "ref"), f"{name} is assigned twice at once", hint)
        taken.add(target)
        found.append(assignment)
    return tuple(found)


def _assignment(data: Any, place: Place, path: str, context: EdgeContext) -> Assignment | None:
    report = context.report
    checked = report.take_object(data, place, _ASSIGNMENT)
    if checked is None:
        return None
    ref, variable = checked["ref"], None
    if isinstance(ref, str):
        variable = context.assignable.get(ref)
    if variable is None:
        _report_target(ref, (place, "ref"), context)
    index = checked.get("index", 0)
    if type(index) is not int:
        report.add((place, "index"), f"expected an integer, found {describe(index)}")
        index = 0
    kind = None if variable is None else variable.kind
    value = context.values.read(checked["value"], (place, "value"), kind)
    if variable is None:
        return None
    return Assignment(variable, value, index, path)


def _report_target(ref: Any, place: Place, context: EdgeContext) -> None:
    known = context.values.scope.names.get(ref) if isinstance(ref, str) else None
    if isinstance(known, Literal):
        context.report.add(place, f"{quote(ref)} is a constant, it cannot be assigned")
    else:
        context.report.take_choice(ref, place, "variable", context.assignable)
