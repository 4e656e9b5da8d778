"""What the present locations give to transient variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safetest_gym.jani.operators import build, is_broken
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable

__all__ = ["LocationValues", "transient_expressions", "with_names"]


@dataclass(frozen=True, slots=True)
class LocationValues:
    """What the locations of one automaton give to transient variables, by location."""

    location_variable: Variable | None
    values: Sequence[Mapping[Variable, Expression]]


def transient_expressions(
    transients: Sequence[Variable], automata: Sequence[LocationValues]
) -> dict[Variable, Expression]:
    """Per transient variable its value in a state.

    The first automaton that gives one in its present location decides, else the
    variable has its initial value.
    """
    found: dict[Variable, Expression] = {}
    for variable in transients:
        assert variable.initial is not None, "the reader demands an initial value"
        node: Expression = Literal(variable.initial, variable.kind)
        for automaton in reversed(automata):
            node = _decide(automaton, variable, node)
        found[variable] = node
    return found


def _decide(automaton: LocationValues, variable: Variable, otherwise: Expression) -> Expression:
    node = otherwise
    for index in range(len(automaton.values) - 1, -1, -1):
        value = automaton.values[index].get(variable)
        if value is None or is_broken(value):
            continue
        if variable.kind == "real" and value.kind == "int":
            value = build("*", (Literal(1.0, "real"), value))
        if automaton.location_variable is None:
            return value
        here = build("=", (Reference(automaton.location_variable), Literal(index, "int")))
        node = Operation("ite", (here, value, node), variable.kind)
    return node


def with_names(scope: Scope, names: Mapping[str, Expression]) -> Scope:
    """``scope`` with more names."""
    if not names:
        return scope
    return Scope({**scope.names, **names}, scope.functions, absent=scope.absent)
