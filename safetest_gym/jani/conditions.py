"""Read conditions on states, and the files that properties point to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from safetest_gym.errors import JaniError
from safetest_gym.jani.document import Document, load_document
from safetest_gym.jani.expressions import EXPRESSION, Reader
from safetest_gym.jani.operators import BROKEN, build, is_broken
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.tree import Automaton, Expression, Function, Literal, Model, Reference

__all__ = ["Node", "StateReader"]

_FILE = Shape("a reference to a file", ("file",))
_CONDITION = Shape("a state condition", ("op",), ("exp", "locations"))
_LOCATION = Shape("a location test", ("automaton", "location"), ("index",))


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a document.

    Attributes:
        directory: what file names in it are relative to.
        files: the files that led here, to notice circles.
    """

    data: Any
    place: Place
    directory: Path
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: Document) -> Node:
        """The whole document."""
        files = (os.path.realpath(document.name),) if document.name else ()
        return cls(document.data, document.root, document.directory, files)

    def child(self, key: str | int) -> Node:
        """The part under ``key``."""
        return replace(self, data=self.data[key], place=(self.place, key))

    def children(self) -> list[Node]:
        """The items of a list."""
        return [self.child(index) for index in range(len(self.data))]


class StateReader:
    """Reads what properties say about the states of one model."""

    def __init__(self, model: Model, report: Report) -> None:
        names = cast(Mapping[str, Expression], model.scope["names"])
        functions = cast(Mapping[str, Function], model.scope["functions"])
        self.model = model
        self.report = report
        self.expressions = Reader(Scope(dict(names), dict(functions)), report)

    def follow(self, node: Node) -> Node | None:
        """The content of the file that ``node`` points to, or ``node`` if it does not.

        None if that is an error, which is reported.
        """
        while isinstance(node.data, dict) and "file" in node.data:
            if self.report.take_object(node.data, node.place, _FILE) is None:
                return None
            at, name = (node.place, "file"), node.data["file"]
            if not isinstance(name, str) or not name or "\0" in name:
                self.report.add(at, f"expected the name of a file, found {describe(name)}")
                return None
            path = os.path.join(node.directory, name)
            if os.path.realpath(path) in node.files:
                self.report.add(at, f"file {quote(name)} refers to itself")
                return None
            if not os.path.exists(path):
                self.report.add(at, f"no such file: {quote(path)}")
                return None
            try:
                document = load_document(path, self.report)
            except JaniError as error:
                self.report.include(error)
                return None
            files = (*node.files, os.path.realpath(path))
            node = Node(document.data, document.root, document.directory, files)
        return node

    def condition(self, node: Node) -> Expression:
        """A bool expression: a ``state-condition``, an expression, or a file with one."""
        found = self.follow(node)
        if found is None:
            return BROKEN
        data, place = found.data, found.place
        operator = data.get("op") if isinstance(data, dict) else None
        if operator == "objective" and "goal" in data:
            return self.condition(found.child("goal"))
        if operator != "state-condition":
            if isinstance(data, dict) and operator is None and "exp" in data:
                if self.report.take_object(data, place, EXPRESSION) is None:
                    return BROKEN
                data, place = data["exp"], (place, "exp")
            return self.expressions.read(data, place, "bool")
        if self.report.take_object(data, place, _CONDITION) is None:
            return BROKEN
        parts: list[Expression] = []
        if "locations" in data:
            for automaton, index in self.locations(data["locations"], (place, "locations")):
                parts.append(_at(self.model.automata[automaton], index))
        if "exp" in data:
            parts.append(self.expressions.read(data["exp"], (place, "exp"), "bool"))
        elif "locations" not in data:
            self.report.add(place, "a state condition needs 'exp' or 'locations'")
        if any(is_broken(part) for part in parts):
            return BROKEN
        return build("∧", parts)

    def number(self, node: Node) -> Expression:
        """A numeric expression, or a file with one."""
        found = self.follow(node)
        if found is None:
            return BROKEN
        data, place = found.data, found.place
        if isinstance(data, dict) and "op" not in data and "exp" in data:
            if self.report.take_object(data, place, EXPRESSION) is None:
                return BROKEN
            data, place = data["exp"], (place, "exp")
        return self.expressions.read(data, place, "real")

    def locations(self, data: Any, place: Place) -> list[tuple[int, int]]:
        """Automata (by position in the model) and their locations (by number)."""
        found: dict[int, int] = {}
        for index, item in enumerate(self.report.take_list(data, place, "location tests")):
            at = (place, index)
            checked = self.report.take_object(item, at, _LOCATION)
            automaton = None if checked is None else self._automaton(checked, at)
            if checked is None or automaton is None:
                continue
            names = self.model.automata[automaton].locations
            name = self.report.take_choice(checked["location"], (at, "location"), "location", names)
            if name is None:
                continue
            if found.setdefault(automaton, names.index(name)) != names.index(name):
                self.report.add(at, "this automaton is already in another location")
        return list(found.items())

    def _automaton(self, data: Mapping[str, Any], place: Place) -> int | None:
        documented = cast(Sequence[str], self.model.scope["automata"])
        declared = cast(Sequence[str], self.model.scope["declared"])
        names = [automaton.name for automaton in self.model.automata]
        at = (place, "automaton")
        name = self.report.take_choice(data["automaton"], at, "automaton", {*names, *documented})
        if name is None:
            return None
        fitting = [i for i, known in enumerate(documented) if known == name]
        if name in names and name not in documented:
            fitting = [names.index(name)]
        if "index" not in data:
            if len(fitting) > 1:
                hint = f"give its 'index', or one of {', '.join(names)}"
                self.report.add(at, f"there are several instances of {quote(name)}", hint)
                return None
            return fitting[0]
        number = data["index"]
        if type(number) is int and number in fitting:
            return number
        as_declared = declared.index(documented[fitting[0]])
        if type(number) is int and number == as_declared and len(fitting) == 1:
            return fitting[0]
        message = f"automaton {quote(name)} has index {' or '.join(map(str, fitting))}"
        self.report.add((place, "index"), f"{message}, not {describe(number)}")
        return None


def _at(automaton: Automaton, location: int) -> Expression:
    if automaton.location_variable is None:
        return build("∧", ())
    here = Reference(automaton.location_variable)
    return build("=", (here, Literal(location, "int")))
