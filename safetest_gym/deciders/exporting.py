"""Write a task as standard JANI, for checkers and planners that do not know ours.

Other tools read every edge as a choice of its own, our ``edge`` mode. Locations that a
condition speaks of become a variable, because properties may only read global variables.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from safetest_gym.deciders.expression_json import JsonWriter, conjunction, disjunction, negation
from safetest_gym.errors import ConfigError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.tree import (
    FALSE,
    Expression,
    Literal,
    Operation,
    PlanningProperty,
    Reference,
    StartCondition,
    StartValues,
    Variable,
    subexpressions,
)

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Json", "export_standard", "filter_property", "new_name", "prepare"]

Json = Any


def export_standard(document: Json, task: Task) -> Json:
    """The model as an mdp or dtmc with the task as filter properties.

    Properties: ``safe`` is Pmin [¬goal U fail], 0 exactly in safe states; ``min_fail`` is
    Pmin [F fail], where a run goes on after the goal; ``max_goal`` is Pmax [F goal];
    ``max_safe_goal`` is Pmax [¬fail U goal].

    Args:
        document: JSON data of the model file that the task was loaded from.
    """
    with deep_recursion():
        result, writer = prepare(document, task)
        failing = writer.write(task.property.failure or FALSE)
        goal = writer.write(task.property.goal or FALSE)
        result["properties"] = [
            filter_property("safe", "Pmin", _until(negation(goal), failing)),
            filter_property("min_fail", "Pmin", {"op": "F", "exp": failing}),
            filter_property("max_goal", "Pmax", {"op": "F", "exp": goal}),
            filter_property("max_safe_goal", "Pmax", _until(negation(failing), goal)),
        ]
        return result


def _until(left: Json, right: Json) -> Json:
    return {"op": "U", "left": left, "right": right}


def filter_property(name: str, operator: str, path: Json) -> Json:
    """A probability asked for in all initial states."""
    values = {"op": operator, "exp": path}
    states = {"op": "initial"}
    expression = {"op": "filter", "fun": "values", "states": states, "values": values}
    return {"name": name, "expression": expression}


def prepare(document: Json, task: Task) -> tuple[Json, JsonWriter]:
    """A copy that other tools read, with start states, and what writes conditions for it."""
    result = copy.deepcopy(document)
    if result["type"] == "lts":
        result["type"] = "mdp"
    features = result.setdefault("features", [])
    if "derived-operators" not in features:
        features.append("derived-operators")
    for constant in result.get("constants", []):
        if "value" not in constant:
            constant["value"] = task.model.constants[constant["name"]]
    scopes = [result, *result["automata"]]
    for variable in (v for scope in scopes for v in scope.get("variables", [])):
        kind = variable["type"]
        if isinstance(kind, dict) and kind.get("kind") == "bounded" and kind["base"] == "real":
            variable["type"] = "real"  # Storm knows no bounded reals
    mirrors = _mirror_locations(result, task)
    names = {variable["name"]: variable["name"] for variable in result.get("variables", [])}
    writer = JsonWriter(names | mirrors)
    if task.property.start is not None:
        _restrict(result, task, writer)
    return result, writer


def _mirror_locations(result: Json, task: Task) -> dict[str, str]:
    """Let a variable follow each location that a condition reads; new names by old ones."""
    mirrors: dict[str, str] = {}
    read = _variables_of(_conditions(task.property))
    for automaton in task.model.automata:
        variable = automaton.location_variable
        if variable is None or variable not in read:
            continue
        source = [entry for entry in result["automata"] if entry["name"] == automaton.name]
        if len(source) != 1 or len(automaton.initial_locations) != 1:
            raise ConfigError(
                f"the location of {automaton.name} cannot be exported: the automaton needs to "
                "have one instance and one initial location"
            )
        name = new_name(result, f"location_of_{automaton.name}")
        mirrors[variable.name] = name
        numbers = {location: i for i, location in enumerate(automaton.locations)}
        for edge in source[0]["edges"]:
            for destination in edge["destinations"]:
                value = numbers[destination["location"]]
                destination.setdefault("assignments", []).append({"ref": name, "value": value})
        bounds = {"lower-bound": 0, "upper-bound": len(automaton.locations) - 1}
        result.setdefault("variables", []).append(
            {
                "name": name,
                "type": {"kind": "bounded", "base": "int", **bounds},
                "initial-value": automaton.initial_locations[0],
            }
        )
    return mirrors


def _conditions(wanted: PlanningProperty) -> list[Expression]:
    conditions = [wanted.failure, wanted.goal]
    if isinstance(wanted.start, StartCondition):
        conditions.append(wanted.start.condition)
    return [condition for condition in conditions if condition is not None]


def _variables_of(conditions: Iterable[Expression]) -> set[Variable]:
    nodes = subexpressions(conditions)
    return {node.variable for node in nodes if isinstance(node, Reference)}


def new_name(result: Json, wanted: str) -> str:
    """The name, or with underscores until nothing else has it."""
    scopes = [result, *result["automata"]]
    parts = (scope.get(part, []) for scope in scopes for part in ("variables", "constants"))
    taken = {entry["name"] for part in parts for entry in part}
    while wanted in taken:
        wanted += "_"
    return wanted


def _restrict(result: Json, task: Task, writer: JsonWriter) -> None:
    """Let the model begin in the start states of the property, and nowhere else."""
    start = task.property.start
    fixed = _fixed_variables(result, task)
    if isinstance(start, StartValues):
        condition = disjunction([_state(values, task, writer, fixed) for values in start.states])
    else:
        assert isinstance(start, StartCondition)
        _require_fixed(start.condition, fixed)
        condition = writer.write(start.condition)
    for automaton in result["automata"]:
        automaton.pop("restrict-initial", None)
    result["restrict-initial"] = {"exp": condition}
    free = {variable.name for variable in task.variables if variable not in fixed}
    for variable in result.get("variables", []):
        if variable["name"] in free:
            variable.pop("initial-value", None)


def _fixed_variables(result: Json, task: Task) -> dict[Variable, int | float | bool]:
    """Locations and local variables begin as the model says; their first values."""
    names = {variable["name"] for variable in result.get("variables", [])}
    fixed: dict[Variable, int | float | bool] = {}
    for automaton in task.model.automata:
        if automaton.location_variable is not None:
            if len(automaton.initial_locations) != 1:
                raise ConfigError(f"{automaton.name} has several initial locations")
            fixed[automaton.location_variable] = automaton.initial_locations[0]
    for variable in task.variables:
        if variable.name not in names and variable not in fixed:
            if variable.initial is None:
                raise ConfigError(f"the local variable {variable.name} has no initial value")
            fixed[variable] = variable.initial
    return fixed


def _state(
    values: Sequence[Any], task: Task, writer: JsonWriter, fixed: dict[Variable, Any]
) -> Json:
    parts = []
    for variable, value in zip(task.variables, values, strict=True):
        if variable not in fixed:
            reference = writer.write(Reference(variable))
            parts.append({"op": "=", "left": reference, "right": value})
        elif fixed[variable] != value:
            raise ConfigError(
                f"start states with {variable.name} = {value} cannot be exported: only global "
                f"variables may differ from the model's initial values"
            )
    return conjunction(parts)


def _require_fixed(condition: Expression, fixed: dict[Variable, Any]) -> None:
    """Every variable that keeps its initial value must be asked to have just that."""
    asked = set()
    parts = [condition]
    for part in parts:
        if isinstance(part, Operation) and part.operator == "∧":
            parts += part.operands
        elif isinstance(part, Operation) and part.operator == "=":
            for left, right in (part.operands, part.operands[::-1]):
                if (
                    isinstance(left, Reference)
                    and isinstance(right, Literal)
                    and fixed.get(left.variable) == right.value
                ):
                    asked.add(left.variable)
    for variable in fixed:
        if variable not in asked:
            raise ConfigError(
                f"the start condition leaves {variable.name} open; only start states with its "
                f"initial value {fixed[variable]} can be exported"
            )
