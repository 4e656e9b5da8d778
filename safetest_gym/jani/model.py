"""Read a whole model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safetest_gym.jani.automata import Instance, local_names, read_instance, read_restriction
from safetest_gym.jani.declarations import Declarations, read_declarations
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.digest import digest_model
from safetest_gym.jani.document import Document, Source, load_document
from safetest_gym.jani.edges import EdgeContext, read_edges
from safetest_gym.jani.expressions import Reader
from safetest_gym.jani.header import check_header, read_actions, read_automata
from safetest_gym.jani.naming import instance_names, variable_names
from safetest_gym.jani.operators import build
from safetest_gym.jani.properties import list_properties, read_own_properties
from safetest_gym.jani.reporting import Report
from safetest_gym.jani.system import System, input_edges, read_elements, read_vectors
from safetest_gym.jani.transients import transient_expressions, with_names
from safetest_gym.jani.tree import Automaton, Edge, Expression, Model, Reference, Variable

__all__ = ["read_model"]


def read_model(source: Source, *, constants: Mapping[str, Any] | None = None) -> Model:
    """Read and check a JANI model.

    Args:
        source: a file, or its JSON data.
        constants: values for the constants that the document leaves open; texts are
            fine, as a command line gives them.

    Raises:
        JaniError: the document is wrong; a group if it is wrong at several places.
    """
    report = Report()
    document = load_document(source, report)
    with deep_recursion():
        model = _read(document, report, constants or {})
        return dataclasses.replace(model, properties=read_own_properties(model, document))


@dataclass(frozen=True, slots=True)
class _Parts:
    """What of a model is read before its edges.

    Attributes:
        instances: those in the composition, then those of automata it does not mention
            (read for their errors).
        conditions: reads expressions about states.
    """

    declarations: Declarations
    actions: dict[str, None]
    system: System
    instances: Sequence[Instance]
    conditions: Reader

    @property
    def composed(self) -> Sequence[Instance]:
        """The instances in the composition."""
        return self.instances[: len(self.system.elements)]


def _read(document: Document, report: Report, given: Mapping[str, Any]) -> Model:
    root = document.root
    data = check_header(document.data, root, report)
    parts = _declare(document, data, given, report)
    initial = [read_restriction(data, root, parts.conditions)]
    edges: list[tuple[Edge, ...]] = []
    for instance in parts.instances:
        context = _context(instance, parts, deterministic=data["type"] == "lts")
        restriction = read_restriction(instance.data, instance.place, context.conditions)
        if len(edges) < len(parts.system.elements):
            initial.append(restriction)
        edges.append(read_edges(instance.data["edges"], (instance.place, "edges"), context))
    vectors = read_vectors(parts.system, edges[: len(parts.composed)], parts.actions, report)
    list_properties(data.get("properties", []), (root, "properties"), report)
    report.raise_errors()
    constants = parts.declarations.constants
    results = {vector.result for vector in vectors}
    return Model(
        name=data["name"],
        type=data["type"],
        constants=constants,
        variables=_state_variables(parts),
        transients=_all_variables(parts, transient=True),
        actions=tuple([action for action in parts.actions if action in results]),
        automata=_automata(parts, edges, report),
        vectors=vectors,
        initial=build("∧", [node for node in initial if node is not None]),
        properties=(),
        digest=digest_model(document, {name: constants[name] for name in sorted(given)}),
        metadata=data.get("metadata", {}),
        scope=_scope(parts),
    )


def _declare(
    document: Document, data: Mapping[str, Any], given: Mapping[str, Any], report: Report
) -> _Parts:
    root = document.root
    declarations = read_declarations(data, root, report, given)
    actions = read_actions(data, root, report)
    automata = read_automata(data, root, report)
    system = System({}, (root, "system"), ())
    if automata and data["system"] is not None:
        system = read_elements(data["system"], (root, "system"), automata, actions, report)
    listed = [element.automaton for element in system.elements]
    listed += [automaton for automaton in automata if automaton not in listed]
    names = instance_names(listed)
    own = [local_names(automata[automaton][0]) for automaton in listed]
    unique = variable_names(names, own, declarations.names)
    instances: list[Instance] = []
    for name, automaton, chosen in zip(names, listed, unique, strict=True):
        body, place = automata[automaton]
        instances.append(read_instance(name, body, place, declarations, chosen, report))
    transients = [variable for variable in declarations.variables if variable.transient]
    values = [instance.values for instance in instances[: len(system.elements)]]
    located = {
        variable.name: node for variable, node in transient_expressions(transients, values).items()
    }
    conditions = Reader(with_names(declarations.scope, located), report)
    return _Parts(declarations, actions, system, instances, conditions)


def _context(instance: Instance, parts: _Parts, *, deterministic: bool) -> EdgeContext:
    scope, conditions = instance.scope, parts.conditions
    assigned: dict[str, Expression] = {}
    for name, variable in instance.assignable.items():
        if variable is not None and variable.transient:
            assigned[name] = Reference(variable)
    if scope is not parts.declarations.scope:
        located: dict[str, Expression] = {}
        for name in assigned:
            if name not in instance.variables:
                located[name] = conditions.scope.names[name]
        own = {v: name for name, v in instance.variables.items() if v.transient}
        for variable, node in transient_expressions(list(own), [instance.values]).items():
            located[own[variable]] = node
        conditions = Reader(with_names(scope, located), conditions.report)
    values = conditions
    if assigned:
        values = Reader(with_names(scope, assigned), conditions.report)
    return EdgeContext(
        conditions=conditions,
        values=values,
        locations=instance.locations,
        actions=parts.actions,
        assignable=instance.assignable,
        deterministic=deterministic,
    )


def _all_variables(parts: _Parts, *, transient: bool) -> tuple[Variable, ...]:
    found = [v for v in parts.declarations.variables if v.transient is transient]
    for instance in parts.composed:
        found += [v for v in instance.variables.values() if v.transient is transient]
    return tuple(found)


def _state_variables(parts: _Parts) -> tuple[Variable, ...]:
    locations = [instance.location_variable for instance in parts.composed]
    return _all_variables(parts, transient=False) + tuple([v for v in locations if v is not None])


def _automata(
    parts: _Parts, edges: Sequence[tuple[Edge, ...]], report: Report
) -> tuple[Automaton, ...]:
    automata: list[Automaton] = []
    for instance, own, element in zip(parts.composed, edges, parts.system.elements, strict=False):
        automata.append(
            Automaton(
                name=instance.name,
                locations=tuple(instance.locations),
                location_variable=instance.location_variable,
                initial_locations=instance.initial_locations,
                edges=own + input_edges(element, len(instance.locations), own, report),
            )
        )
    return tuple(automata)


def _scope(parts: _Parts) -> Mapping[str, object]:
    """What conditions given later may mention; see `safetest_gym.jani.conditions`."""
    scope = parts.conditions.scope
    names: dict[str, Expression] = {}
    for variable in _state_variables(parts):
        names[variable.name] = Reference(variable)
    for instance in parts.composed:
        for name, variable in instance.variables.items():
            if not variable.transient:
                names.setdefault(f"{instance.name}.{name}", names[variable.name])
    names.update(scope.names)
    declared = list(dict.fromkeys(instance.automaton for instance in parts.instances))
    return {
        "names": names,
        "functions": dict(scope.functions),
        "automata": tuple([instance.automaton for instance in parts.composed]),
        "declared": tuple(declared),
    }
