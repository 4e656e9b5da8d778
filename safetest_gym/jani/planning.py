"""Read ``PA`` properties and the parts they are made of."""

from __future__ import annotations

from typing import Any

from safetest_gym.jani.conditions import Node, StateReader
from safetest_gym.jani.reporting import Shape, describe
from safetest_gym.jani.start_values import read_start_node
from safetest_gym.jani.tree import Expression, PlanningProperty

__all__ = ["is_objective", "read_objective", "read_planning_property"]

_PROPERTY = Shape("a PA property", ("op",), ("objective", "reach", "start"))
_OBJECTIVE = Shape(
    "an objective",
    ("op",),
    ("goal", "goal-potential", "goal-reward", "step-reward", "accumulate"),
)
_REWARDS = ("goal-potential", "goal-reward", "step-reward")


def read_planning_property(name: str, node: Node, reader: StateReader) -> PlanningProperty:
    """The property ``{"op": "PA", …}``; what has errors (reported) is None in it."""
    checked = reader.report.take_object(node.data, node.place, _PROPERTY)
    parts: dict[str, Any] = {}
    if checked is None:
        return PlanningProperty(name, None, None, None)
    if "objective" in checked:
        parts = _read_objective(node.child("objective"), reader)
    failure = start = None
    if "reach" in checked:
        failure = reader.condition(node.child("reach"))
    if "start" in checked:
        start = read_start_node(node.child("start"), reader)
    return PlanningProperty(name, parts.pop("goal", None), failure, start, **parts)


def is_objective(node: Node) -> bool:
    """Does it say more than a condition: is it an objective, or a ``PA`` property?"""
    return isinstance(node.data, dict) and node.data.get("op") in ("objective", "PA")


def read_objective(name: str, node: Node, reader: StateReader) -> PlanningProperty:
    """An objective on its own; a ``PA`` property is fine too."""
    if node.data["op"] == "PA":
        return read_planning_property(name, node, reader)
    parts = _read_objective(node, reader)
    return PlanningProperty(name, parts.pop("goal", None), None, None, **parts)


def _read_objective(node: Node, reader: StateReader) -> dict[str, Expression]:
    """The fields of `PlanningProperty` that an objective decides."""
    report = reader.report
    found = reader.follow(node)
    if found is None:
        return {}
    data, place = found.data, found.place
    operator = data.get("op") if isinstance(data, dict) else None
    if operator == "state-condition":
        return {"goal": reader.condition(found)}
    checked = report.take_object(data, place, _OBJECTIVE)
    if checked is None:
        return {}
    if operator != "objective":
        message = f"expected 'objective', found {describe(operator)}"
        report.add((place, "op"), message)
        return {}
    parts: dict[str, Expression] = {}
    if "goal" in checked:
        parts["goal"] = reader.condition(found.child("goal"))
    for key in _REWARDS:
        if key in checked:
            parts[key.replace("-", "_")] = reader.number(found.child(key))
    at = (place, "accumulate")
    for index, item in enumerate(report.take_list(checked.get("accumulate", []), at, "texts")):
        if item != "steps":
            report.add((at, index), f"rewards accumulate over 'steps', not {describe(item)}")
    return parts
