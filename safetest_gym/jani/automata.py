"""Read automata: first what they declare, then, once all are known, their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from safetest_gym.jani.declarations import Declarations, read_variable
from safetest_gym.jani.expressions import EXPRESSION, Reader
from safetest_gym.jani.functions import FunctionTable, register_functions
from safetest_gym.jani.operators import BROKEN
from safetest_gym.jani.reporting import Place, Report, Shape, quote
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.transients import LocationValues
from safetest_gym.jani.tree import Expression, Literal, Reference, Variable
from safetest_gym.jani.types import Type, check_value

__all__ = ["Instance", "local_names", "read_instance", "read_restriction"]

_LOCATION = Shape("a location", ("name",), ("transient-values", "time-progress"))
_TRANSIENT_VALUE = Shape("a transient value", ("ref", "value"))
_VARIABLE = Shape("a variable", ("name", "type"), ("transient", "initial-value"))


@dataclass(slots=True)
class Instance:
    """One occurrence of an automaton in the composition, before its edges are read.

    Attributes:
        automaton: the name in the document; ``name`` is the instance's.
        place: of the automaton in the document.
        variables: its own, by their names in the document.
        scope: everything its expressions may use, but transient variables.
        assignable: what its edges may assign, by name; None for what has errors.
        values: what its locations give to transient variables.
    """

    name: str
    automaton: str
    data: Mapping[str, Any]
    place: Place
    scope: Scope
    locations: dict[str, int] = field(default_factory=dict)
    initial_locations: tuple[int, ...] = ()
    variables: dict[str, Variable] = field(default_factory=dict)
    assignable: dict[str, Variable | None] = field(default_factory=dict)
    location_variable: Variable | None = None
    values: LocationValues = field(default_factory=lambda: LocationValues(None, ()))


def local_names(data: Mapping[str, Any]) -> list[str]:
    """The names of an automaton's own variables, as far as they are well-formed."""
    variables = data.get("variables")
    items = variables if isinstance(variables, list) else []
    names = [item.get("name") for item in items if isinstance(item, dict)]
    return [name for name in names if isinstance(name, str)]


def read_instance(
    name: str,
    data: Mapping[str, Any],
    place: Place,
    outer: Declarations,
    unique: Mapping[str, str],
    report: Report,
) -> Instance:
    """Read all of an automaton but its edges.

    Args:
        name: of the instance.
        data: the automaton, with all required keys.
        place: where it is.
        outer: what the model declares.
        unique: the names its own variables get in the model.
        report: where errors go.
    """
    instance = Instance(name, data["name"], data, place, outer.scope)
    instance.assignable = dict(outer.assignable)
    _read_scope(instance, outer, unique, report)
    _read_locations(instance, unique, report)
    return instance


def _read_scope(
    instance: Instance, outer: Declarations, unique: Mapping[str, str], report: Report
) -> None:
    data, place = instance.data, (instance.place, "variables")
    entries = register_functions(data, instance.place, report, outer.scope.functions)
    items = report.take_list(data.get("variables", []), place, "variables")
    if not items and not entries:
        return
    scope = Scope(
        dict(outer.scope.names), dict(outer.scope.functions), absent=dict(outer.scope.absent)
    )
    instance.scope = scope
    reader = outer.reader
    for index, item in enumerate(items):
        at = (place, index)
        checked = report.take_object(item, at, _VARIABLE)
        if checked is None:
            continue
        name = report.take_name(checked["name"], (at, "name"), "a variable")
        if name is None:
            continue
        if name in instance.variables or name in outer.names:
            report.add((at, "name"), f"{quote(name)} is declared twice", "rename one")
            continue
        variable = read_variable(checked, at, reader, unique[name])
        instance.assignable[name] = variable
        scope.names[name] = BROKEN if variable is None else Reference(variable)
        if variable is None:
            continue
        instance.variables[name] = variable
        if variable.transient:
            del scope.names[name]
            scope.absent[name] = f"transient variable {quote(name)} cannot be read here"
    FunctionTable(entries, scope, report).read_all()


def _read_locations(instance: Instance, unique: Mapping[str, str], report: Report) -> None:
    data, place = instance.data, (instance.place, "locations")
    given: list[dict[Variable, Expression]] = []
    items = report.take_list(data["locations"], place, "locations")
    reader = Reader(instance.scope, report)
    for index, item in enumerate(items):
        at = (place, index)
        checked = report.take_object(item, at, _LOCATION)
        if checked is None:
            continue
        name = report.take_name(checked["name"], (at, "name"), "a location")
        if name is None:
            continue
        if name in instance.locations:
            report.add((at, "name"), f"location {quote(name)} is declared twice", "rename one")
            continue
        if "time-progress" in checked:
            message = "time-progress conditions (location invariants) are not supported"
            report.add((at, "time-progress"), message)
        instance.locations[name] = len(given)
        given.append(_transient_values(instance, checked, at, reader))
    if not items and isinstance(data["locations"], list):
        report.add(place, "an automaton needs a location")
    instance.initial_locations = _initial_locations(instance, report)
    if len(given) > 1:
        instance.location_variable = _location_variable(instance, unique, report)
    instance.values = LocationValues(instance.location_variable, given)


def _location_variable(instance: Instance, unique: Mapping[str, str], report: Report) -> Variable:
    initial = instance.initial_locations
    return Variable(
        name=unique[""],
        kind="int",
        lower=0,
        upper=len(instance.locations) - 1,
        initial=initial[0] if len(initial) == 1 else None,
        locations=tuple(instance.locations),
        path=report.path((instance.place, "locations")),
    )


def _initial_locations(instance: Instance, report: Report) -> tuple[int, ...]:
    place = (instance.place, "initial-locations")
    data = report.take_list(instance.data["initial-locations"], place, "location names")
    found: dict[int, None] = {}
    for index, item in enumerate(data):
        name = report.take_choice(item, (place, index), "location", instance.locations)
        if name is not None:
            found[instance.locations[name]] = None
    if not data and isinstance(instance.data["initial-locations"], list):
        report.add(place, "an automaton needs an initial location")
    return tuple(found)


def _transient_values(
    instance: Instance, location: Mapping[str, Any], place: Place, reader: Reader
) -> dict[Variable, Expression]:
    report, place = reader.report, (place, "transient-values")
    found: dict[Variable, Expression] = {}
    items = report.take_list(location.get("transient-values", []), place, "transient values")
    for index, item in enumerate(items):
        at = (place, index)
        checked = report.take_object(item, at, _TRANSIENT_VALUE)
        if checked is None:
            continue
        variable = _transient(instance, checked["ref"], (at, "ref"), report)
        value = reader.read(
            checked["value"], (at, "value"), None if variable is None else variable.kind
        )
        if variable is None:
            continue
        if variable in found:
            report.add((at, "ref"), f"{quote(variable.name)} gets two values")
        if type(value) is Literal and value.kind != "bool":
            declared = Type(variable.kind, variable.lower, variable.upper)
            check_value(value.value, declared, (at, "value"), report, "the value")
        found[variable] = value
    return found


def _transient(instance: Instance, ref: Any, place: Place, report: Report) -> Variable | None:
    variable = instance.assignable.get(ref) if isinstance(ref, str) else None
    if variable is None:
        known = [n for n, v in instance.assignable.items() if v is None or v.transient]
        report.take_choice(ref, place, "transient variable", known)
    elif not variable.transient:
        report.add(place, f"{quote(variable.name)} is not a transient variable")
        return None
    return variable


def read_restriction(data: Mapping[str, Any], place: Place, reader: Reader) -> Expression | None:
    """The ``restrict-initial`` of a model or automaton, None if it has none."""
    if "restrict-initial" not in data:
        return None
    at = (place, "restrict-initial")
    checked = reader.report.take_object(data["restrict-initial"], at, EXPRESSION)
    return None if checked is None else reader.read(checked["exp"], (at, "exp"), "bool")
