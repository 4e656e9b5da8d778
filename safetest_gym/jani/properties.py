"""Read properties, and conditions, start states and objectives that stand on their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from safetest_gym.errors import JaniError, JaniErrorGroup
from safetest_gym.jani.conditions import Node, StateReader
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.document import Document, Source, load_document
from safetest_gym.jani.operators import BROKEN
from safetest_gym.jani.planning import is_objective, read_objective, read_planning_property
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote
from safetest_gym.jani.start_values import read_start_node
from safetest_gym.jani.targets import find_target
from safetest_gym.jani.text import parse_expression
from safetest_gym.jani.tree import (
    Expression,
    FilterProperty,
    Model,
    PlanningProperty,
    Property,
    Start,
    StartCondition,
    UnsupportedProperty,
)

__all__ = [
    "PropertyItem",
    "list_properties",
    "read_condition",
    "read_goal",
    "read_own_properties",
    "read_properties",
    "read_start",
]

_Part = TypeVar("_Part")
_PROPERTIES = Shape("a file of properties", ("properties",), ("jani-version", "name", "metadata"))
_ENDINGS = (".jani", ".json")


@dataclass(frozen=True, slots=True)
class PropertyItem:
    """A property that is not read yet."""

    name: str
    expression: Any
    place: Place
    extra: str = ""


def list_properties(data: Any, place: Place, report: Report) -> list[PropertyItem]:
    """The properties in a list of them; only that they are some is checked."""
    found: list[PropertyItem] = []
    for index, item in enumerate(report.take_list(data, place, "properties")):
        at = (place, index)
        if not isinstance(item, dict):
            report.add(at, f"expected a property (an object), found {describe(item)}")
            continue
        for key in ("name", "expression"):
            if key not in item:
                report.add(at, f"a property needs {quote(key)}")
        name = item.get("name", "")
        if not isinstance(name, str):
            report.add((at, "name"), f"expected a name, found {describe(name)}")
        elif "expression" in item and "name" in item:
            extra = [key for key in item if key not in ("name", "expression", "comment")]
            extra = [key for key in extra if not key.startswith("x-")]
            expression_place = (at, "expression")
            found.append(PropertyItem(name, item["expression"], expression_place, ", ".join(extra)))
    return found


def read_own_properties(model: Model, document: Document) -> tuple[Property, ...]:
    """The properties in the model's document; those with errors are unsupported ones."""
    report = Report()
    root = Node.of(document)
    place = (document.root, "properties")
    items = list_properties(document.data.get("properties", []), place, report)
    found: list[Property] = []
    for item in items:
        node = replace(root, data=item.expression, place=item.place)
        found.append(_read_property(item, node, model, None))
    return tuple(found)


def read_properties(source: Source, model: Model) -> tuple[Property, ...]:
    """Read a file (or JSON data) of properties of ``model``.

    Properties that are not understood are no error; they come as `UnsupportedProperty`.

    Raises:
        JaniError: it is no such file, or a ``PA`` property has errors.
    """
    report = Report()
    document = load_document(source, report)
    root = Node.of(document)
    data, place = document.data, document.root
    if isinstance(data, dict) and "properties" in data:
        _check_keys(data, place, report)
        data, place = data["properties"], (place, "properties")
    elif isinstance(data, dict) and "expression" in data:
        data, place = [data], place
    elif isinstance(data, dict) and data.get("op") == "PA":
        data = [{"name": Path(document.name).name or "PA", "expression": data}]
    elif not isinstance(data, list):
        hint = "a file has {'properties': […]}, or a list of properties"
        report.add(place, f"expected properties, found {describe(data)}", hint)
        data = []
    found: list[Property] = []
    with deep_recursion():
        for item in list_properties(data, place, report):
            node = replace(root, data=item.expression, place=item.place)
            found.append(_read_property(item, node, model, report))
    report.raise_errors()
    return tuple(found)


def _check_keys(data: dict[str, Any], place: Place, report: Report) -> None:
    if "automata" in data:
        return
    report.take_object(data, place, _PROPERTIES)


def _read_property(item: PropertyItem, node: Node, model: Model, strict: Report | None) -> Property:
    """One property; errors of planning properties go to ``strict`` if that is given."""
    report = Report()
    reader = StateReader(model, report)
    planning = False
    try:
        if item.extra:
            report.add(item.place, f"unknown key in a property: {item.extra}")
        target = reader.follow(node)
        planning = target is None or _is_planning(target.data)
        found = _understand(item.name, target, reader) if target is not None else None
        report.raise_errors()
    except JaniError as error:
        if planning and strict is not None:
            strict.include(error)
        first = error.errors[0] if isinstance(error, JaniErrorGroup) else error
        return UnsupportedProperty(item.name, str(first), is_planning=planning)
    assert found is not None, "a file that cannot be followed is an error"
    return found


def _is_planning(data: Any) -> bool:
    return isinstance(data, dict) and data.get("op") == "PA"


def _understand(name: str, node: Node, reader: StateReader) -> Property:
    if _is_planning(node.data):
        return read_planning_property(name, node, reader)
    target, reason = find_target(node.data, node.place, reader)
    if target is None:
        return UnsupportedProperty(name, reason)
    return FilterProperty(name, target)


def read_condition(source: Source | bool, model: Model) -> Expression:
    """Read a condition on the states of ``model``: a text, a file, or JSON data.

    A file or data may hold a ``state-condition``, an expression, or an objective, whose
    goal it then is.

    Raises:
        JaniError: it is wrong.
    """
    if isinstance(source, str) and not _is_file(source):
        return parse_expression(source, model, "bool")
    return _read_part(source, model, lambda node, reader: reader.condition(node))


def read_start(source: Source, model: Model) -> Start:
    """Read start states: a ``states-values`` or a condition as `read_condition` takes it.

    Raises:
        JaniError: it is wrong.
    """
    if isinstance(source, str) and not _is_file(source):
        return StartCondition(parse_expression(source, model, "bool"))
    found = _read_part(source, model, read_start_node)
    assert found is not None
    return found


def read_goal(source: Source, model: Model) -> PlanningProperty | Expression:
    """Read what to reach: an ``objective``, or a condition as `read_condition` takes it.

    What is read of an objective has neither failure condition nor start states.

    Raises:
        JaniError: it is wrong.
    """
    if isinstance(source, str) and not _is_file(source):
        return parse_expression(source, model, "bool")
    name = Path(source).name if isinstance(source, str | os.PathLike) else "objective"

    def read(node: Node, reader: StateReader) -> PlanningProperty | Expression:
        found = reader.follow(node)
        if found is not None and is_objective(found):
            return read_objective(name, found, reader)
        return BROKEN if found is None else reader.condition(found)

    return _read_part(source, model, read)


def _is_file(source: str) -> bool:
    return os.path.isfile(source) or source.rstrip().endswith(_ENDINGS)


def _read_part(source: Any, model: Model, read: Callable[[Node, StateReader], _Part]) -> _Part:
    report = Report()
    document = load_document(source, report)
    with deep_recursion():
        found = read(Node.of(document), StateReader(model, report))
    report.raise_errors()
    return found
