"""Read functions, each when it is first called."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from safetest_gym.jani.expressions import Reader
from safetest_gym.jani.operators import BROKEN
from safetest_gym.jani.reporting import Place, Report, Shape, quote
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.tree import Function, Parameter
from safetest_gym.jani.types import read_type

__all__ = ["FunctionEntry", "FunctionTable", "register_functions"]

_FUNCTION = Shape("a function", ("name", "type", "parameters", "body"))
_PARAMETER = Shape("a parameter", ("name", "type"))


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """A function as the document has it; no ``data`` if it lacks something."""

    data: dict[str, Any] | None
    place: Place


def register_functions(
    data: Mapping[str, Any], root: Place, report: Report, taken: Container[str] = ()
) -> dict[str, FunctionEntry]:
    """The functions that ``data`` (a model or an automaton) declares, by name.

    Args:
        taken: names of functions declared outside.
    """
    entries: dict[str, FunctionEntry] = {}
    place = (root, "functions")
    for index, item in enumerate(report.take_list(data.get("functions", []), place, "functions")):
        at = (place, index)
        checked = report.take_object(item, at, _FUNCTION)
        if not isinstance(item, dict) or "name" not in item:
            continue
        name = report.take_name(item["name"], (at, "name"), "a function")
        if name is None:
            continue
        if name in entries or name in taken:
            report.add((at, "name"), f"function {quote(name)} is declared twice", "rename one")
        else:
            entries[name] = FunctionEntry(checked, at)
    return entries


class FunctionTable:
    """Functions whose bodies read the names of one scope."""

    def __init__(self, entries: Mapping[str, FunctionEntry], scope: Scope, report: Report) -> None:
        self._entries = entries
        self._scope = scope
        self._report = report
        self._known: dict[str, Function] = {}
        self._open: dict[str, None] = {}
        scope.find_function = self.find
        scope.known_functions = lambda: self._entries

    def read_all(self) -> None:
        """Read also those that nobody calls, for their errors."""
        for name, entry in self._entries.items():
            found = self.find(name, entry.place)
            if found is not None:
                self._scope.functions[name] = found

    def find(self, name: str, place: Place) -> Function | None:
        """The function called ``name``; None if there is none."""
        if name in self._known:
            return self._known[name]
        entry = self._entries.get(name)
        if entry is None:
            return None
        if name in self._open:
            names = list(self._open)
            circle = [*names[names.index(name) :], name]
            self._report.add(
                place,
                f"recursive functions are not supported: {' → '.join(circle)}",
            )
            return _broken(name)
        self._open[name] = None
        self._known[name] = self._read(name, entry)
        del self._open[name]
        return self._known[name]

    def _read(self, name: str, entry: FunctionEntry) -> Function:
        data, place = entry.data, entry.place
        if data is None:
            return _broken(name)
        outside = Reader(self._scope, self._report)
        result = read_type(data["type"], (place, "type"), outside)
        parameters = self._parameters(data["parameters"], (place, "parameters"), outside)
        inside = Scope(
            names=dict(self._scope.names),
            functions=self._scope.functions,
            absent=self._scope.absent,
            find_name=self._scope.find_name,
            find_function=self._scope.find_function,
            known=self._scope.known,
            known_functions=self._scope.known_functions,
        )
        for parameter_name, parameter in parameters.items():
            inside.names[parameter_name] = BROKEN if parameter is None else parameter
        reader = Reader(inside, self._report)
        at = (place, "body")
        body = reader.read(data["body"], at, None if result is None else result.kind)
        complete = [parameter for parameter in parameters.values() if parameter is not None]
        if result is None or len(complete) < len(parameters):
            return _broken(name)
        return Function(name, tuple(complete), result.kind, body)

    def _parameters(self, data: Any, place: Place, reader: Reader) -> dict[str, Parameter | None]:
        found: dict[str, Parameter | None] = {}
        for index, item in enumerate(self._report.take_list(data, place, "parameters")):
            at = (place, index)
            checked = self._report.take_object(item, at, _PARAMETER)
            if checked is None:
                continue
            name = self._report.take_name(checked["name"], (at, "name"), "a parameter")
            declared = read_type(checked["type"], (at, "type"), reader)
            if name in found:
                self._report.add((at, "name"), f"parameter {quote(name)} is declared twice")
            elif name is not None:
                found[name] = None if declared is None else Parameter(name, declared.kind)
        return found


def _broken(name: str) -> Function:
    """Stands for a function whose errors are already reported."""
    return Function(name, (), "bool", BROKEN)
