"""Read listed start states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from safetest_gym.jani.conditions import Node, StateReader
from safetest_gym.jani.operators import is_broken
from safetest_gym.jani.reporting import Place, Shape, describe, quote
from safetest_gym.jani.tree import Reference, Start, StartCondition, StartValues, Value, Variable
from safetest_gym.jani.types import Type, check_value

__all__ = ["read_start_node"]

_STATES = Shape("a list of states", ("op", "values"))
_STATE = Shape("a state", (), ("variables", "locations"))
_VALUE = Shape("a variable's value", ("var", "value"))

Row = list[Value | None]


def read_start_node(node: Node, reader: StateReader) -> Start | None:
    """``states-values`` or a condition; None if there are errors (reported)."""
    found = reader.follow(node)
    if found is None:
        return None
    if not isinstance(found.data, dict) or found.data.get("op") != "states-values":
        condition = reader.condition(found)
        return None if is_broken(condition) else StartCondition(condition)
    checked = reader.report.take_object(found.data, found.place, _STATES)
    if checked is None:
        return None
    place = (found.place, "values")
    before = len(reader.report)
    rows = _Rows(reader)
    items = reader.report.take_list(checked["values"], place, "states")
    states = [rows.read(item, (place, index)) for index, item in enumerate(items)]
    if not items:
        reader.report.add(place, "there is no start state")
    return None if len(reader.report) > before else StartValues(tuple(states))


class _Rows:
    """Reads states as values in the order of the model's variables."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._variables = reader.model.variables
        numbers = {variable: index for index, variable in enumerate(self._variables)}
        self._columns: dict[str, tuple[int, Variable]] = {}
        for name, node in reader.expressions.scope.names.items():
            if isinstance(node, Reference) and node.variable in numbers:
                self._columns[name] = numbers[node.variable], node.variable

    def read(self, data: Any, place: Place) -> tuple[Value, ...]:
        """One state; nonsense if there are errors."""
        report = self._reader.report
        row: Row = [None] * len(self._variables)
        checked = report.take_object(data, place, _STATE)
        if checked is None:
            return ()
        if "variables" in checked:
            at = (place, "variables")
            self._read_values(report.take_list(checked["variables"], at, "values"), at, row)
        if "locations" in checked:
            self._read_locations(checked["locations"], (place, "locations"), row)
        return self._completed(row, place)

    def _read_values(self, items: Sequence[Any], place: Place, row: Row) -> None:
        columns = self._columns
        for index, item in enumerate(items):
            try:
                column, variable = columns[item["var"]]
                value = item["value"]
                if (
                    type(value) is int
                    and variable.kind == "int"
                    and len(item) == 2
                    and row[column] is None
                    and (variable.lower is None or variable.lower <= value)
                    and (variable.upper is None or value <= variable.upper)
                ):
                    row[column] = value
                    continue
            except (KeyError, TypeError):
                pass
            self._read_value(item, (place, index), row)

    def _read_value(self, item: Any, place: Place, row: Row) -> None:
        """All that `_read_values` has no fast way for, mistakes included."""
        report = self._reader.report
        checked = report.take_object(item, place, _VALUE)
        if checked is None:
            return
        name = report.take_choice(checked["var"], (place, "var"), "variable", self._columns)
        if name is None:
            return
        column, variable = self._columns[name]
        at = (place, "value")
        value = self._reader.expressions.constant(checked["value"], at, variable.kind)
        if value is None:
            return
        if row[column] is not None:
            report.add((place, "var"), f"{quote(name)} gets two values")
        row[column] = value
        bounds = Type(variable.kind, variable.lower, variable.upper)
        check_value(value, bounds, at, report, quote(name))

    def _read_locations(self, data: Any, place: Place, row: Row) -> None:
        model = self._reader.model
        for automaton, location in self._reader.locations(data, place):
            variable = model.automata[automaton].location_variable
            if variable is None:
                continue
            column = self._columns[variable.name][0]
            if row[column] not in (None, location):
                message = f"{quote(variable.name)} is also given as {describe(row[column])}"
                self._reader.report.add(place, message)
            row[column] = location

    def _completed(self, row: Row, place: Place) -> tuple[Value, ...]:
        if None not in row:
            return tuple(row)  # type: ignore[arg-type]  # no None left
        state: list[Value] = []
        for value, variable in zip(row, self._variables, strict=True):
            if value is not None:
                state.append(value)
            elif variable.initial is not None:
                state.append(variable.initial)
            else:
                message = f"{quote(variable.name)} gets no value and has no initial value"
                self._reader.report.add(place, message)
        return tuple(state)
