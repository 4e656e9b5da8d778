"""Read constants, global variables and functions, which may use each other in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from safetest_gym.jani.constants import given_value
from safetest_gym.jani.expressions import Reader
from safetest_gym.jani.functions import FunctionTable, register_functions
from safetest_gym.jani.operators import BROKEN
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote, suggest
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.tree import Expression, Literal, Reference, Value, Variable
from safetest_gym.jani.types import Type, check_value, read_type

__all__ = ["Declarations", "read_declarations", "read_variable"]

_CONSTANT = Shape("a constant", ("name", "type"), ("value",))
_VARIABLE = Shape("a variable", ("name", "type"), ("transient", "initial-value"))


@dataclass(slots=True)
class _Entry:
    data: dict[str, Any]
    place: Place
    is_constant: bool
    result: Expression | None = None


@dataclass(slots=True)
class Declarations:
    """What a model declares for all its automata.

    Attributes:
        scope: constants, variables and functions; transient variables are absent from it.
        variables: global variables, transient ones included.
        assignable: the same by name; None for those with errors.
        names: of constants and variables, those with errors included.
    """

    scope: Scope
    reader: Reader
    constants: dict[str, Value] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    assignable: dict[str, Variable | None] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


def read_declarations(
    data: Mapping[str, Any], root: Place, report: Report, given: Mapping[str, Any]
) -> Declarations:
    """Read everything declared at the top level of the model ``data``."""
    resolver = _Resolver(report, given)
    resolver.register(data, root, "constants", _CONSTANT)
    resolver.register(data, root, "variables", _VARIABLE)
    entries = register_functions(data, root, report)
    table = FunctionTable(entries, resolver.scope, report)
    resolver.check_given((root, "constants"))
    for name, entry in resolver.entries.items():
        resolver.find(name, entry.place)
    table.read_all()
    assignable: dict[str, Variable | None] = {}
    for name, entry in resolver.entries.items():
        if not entry.is_constant:
            found = entry.result
            assignable[name] = found.variable if isinstance(found, Reference) else None
    return Declarations(
        resolver.scope,
        resolver.reader,
        resolver.constants,
        [variable for variable in assignable.values() if variable is not None],
        assignable,
        frozenset(resolver.entries),
    )


class _Resolver:
    """Declares constants and variables when they are first asked for."""

    def __init__(self, report: Report, given: Mapping[str, Any]) -> None:
        self.entries: dict[str, _Entry] = {}
        self.constants: dict[str, Value] = {}
        self.scope = Scope(find_name=self.find, known=lambda: self.entries)
        self.reader = Reader(self.scope, report)
        self._report = report
        self._given = given
        self._open: dict[str, None] = {}

    def register(self, data: Mapping[str, Any], root: Place, section: str, shape: Shape) -> None:
        """Note what a section declares, to be read later."""
        place = (root, section)
        for index, item in enumerate(self._report.take_list(data.get(section, []), place, section)):
            at = (place, index)
            known = isinstance(item, dict) and isinstance(item.get("name"), str)
            checked = self._report.take_object(item, at, shape)
            if not known:
                if checked is not None:
                    self._report.take_name(checked["name"], (at, "name"), shape.what)
                continue
            name = self._report.take_name(item["name"], (at, "name"), shape.what)
            if name is None:
                continue
            if name in self.entries:
                self._report.add((at, "name"), f"{quote(name)} is declared twice", "rename one")
                continue
            result = BROKEN if checked is None else None
            self.entries[name] = _Entry(item, at, section == "constants", result)

    def check_given(self, place: Place) -> None:
        """Report values given for constants that are none, or not open."""
        constants = [name for name, entry in self.entries.items() if entry.is_constant]
        for name in self._given:
            if name not in constants:
                hint = suggest(str(name), constants) or (
                    f"open constants: {', '.join(self._open_constants()) or 'none'}"
                )
                self._report.add(place, f"there is no constant {quote(str(name))}", hint)
            elif "value" in self.entries[name].data:
                message = f"constant {quote(name)} has a value in the document"
                at = (self.entries[name].place, "value")
                self._report.add(at, f"{message}, it cannot be given another one")

    def _open_constants(self) -> list[str]:
        return [n for n, e in self.entries.items() if e.is_constant and "value" not in e.data]

    def find(self, name: str, place: Place) -> Expression | None:
        """What ``name`` stands for, declared now if need be; None if nothing has that name."""
        entry = self.entries.get(name)
        if entry is None:
            return None
        if entry.result is None:
            if name in self._open:
                circle = [*list(self._open)[list(self._open).index(name) :], name]
                self._report.add(place, f"defined in a circle: {' → '.join(circle)}")
                return BROKEN
            self._open[name] = None
            if entry.is_constant:
                entry.result = self._constant(name, entry)
            else:
                entry.result = self._variable(entry)
            del self._open[name]
        if isinstance(entry.result, Reference) and entry.result.variable.transient:
            message = f"transient variable {quote(name)} cannot be read here"
            self.scope.absent[name] = message
            return None
        self.scope.names[name] = entry.result
        return entry.result

    def _constant(self, name: str, entry: _Entry) -> Expression:
        data, place = entry.data, entry.place
        declared = read_type(data["type"], (place, "type"), self.reader)
        if "value" in data:
            at: Place = (place, "value")
            kind = None if declared is None else declared.kind
            if declared is None or kind is None:
                self.reader.read(data["value"], at)
                return BROKEN
            value = self.reader.constant(data["value"], at, kind)
        elif declared is None:
            return BROKEN
        elif name in self._given:
            at = place
            value = given_value(name, self._given[name], declared.kind, place, self._report)
        else:
            self._report.add(
                place,
                f"constant {quote(name)} has no value",
                f"give one: constants={{{name!r}: …}}, on the command line --const {name}=…",
            )
            return BROKEN
        what = f"constant {quote(name)}"
        if value is None or not check_value(value, declared, at, self._report, what):
            return BROKEN
        self.constants[name] = value
        return Literal(value, declared.kind)

    def _variable(self, entry: _Entry) -> Expression:
        variable = read_variable(entry.data, entry.place, self.reader, entry.data["name"])
        return BROKEN if variable is None else Reference(variable)


def read_variable(data: dict[str, Any], place: Place, reader: Reader, name: str) -> Variable | None:
    """The variable a checked declaration declares, under ``name``; None if it has errors."""
    report = reader.report
    transient = data.get("transient", False)
    if not isinstance(transient, bool):
        report.add((place, "transient"), f"expected true or false, found {describe(transient)}")
        return None
    declared = read_type(data["type"], (place, "type"), reader)
    initial, at = None, (place, "initial-value")
    if declared is None:
        return None
    if "initial-value" in data:
        initial = _initial_value(data["initial-value"], at, declared, reader)
        if initial is None:
            return None
    elif transient:
        report.add(place, f"transient variable {quote(name)} needs an 'initial-value'")
        return None
    return Variable(
        name=name,
        kind=declared.kind,
        lower=declared.lower,
        upper=declared.upper,
        initial=initial,
        transient=transient,
        path=report.path(place),
    )


def _initial_value(data: Any, place: Place, declared: Type, reader: Reader) -> Value | None:
    value = reader.constant(data, place, declared.kind)
    if value is None or declared.kind == "bool":
        return value
    within = check_value(value, declared, place, reader.report, "the initial value")
    return value if within else None
