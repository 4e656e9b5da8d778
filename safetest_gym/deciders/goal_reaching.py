"""Avoiding failures as reaching a goal ([S] section 2), for planners.

Every action gets an artificial goal as one more outcome; goal states and dead ends get an
action that leads there; failing states are traps. A policy that reaches the artificial goal
with probability 1 is one that surely never fails, so a state is safe exactly if Pmax is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetest_gym.deciders.exporting import Json, filter_property, new_name, prepare
from safetest_gym.deciders.expression_json import conjunction, disjunction, negation
from safetest_gym.errors import ConfigError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.tree import FALSE

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["export_goal_reaching"]


def export_goal_reaching(document: Json, task: Task) -> Json:
    """The goal-reaching mdp, with the property ``reach``: Pmax [F the artificial goal].

    Args:
        document: JSON data of the model file that the task was loaded from.

    Raises:
        ConfigError: the model is a dtmc or has several automata, whose dead ends no guard
            can tell.
    """
    if task.model.type == "dtmc" or len(task.model.automata) != 1:
        raise ConfigError(
            "the goal-reaching form is for models of one automaton with choices; export the "
            "standard form"
        )
    with deep_recursion():
        result, writer = prepare(document, task)
        reached = new_name(result, "artificial_goal")
        result["variables"].append({"name": reached, "type": "bool", "initial-value": False})
        failing = writer.write(task.property.failure or FALSE)
        goal = writer.write(task.property.goal or FALSE)
        (automaton,) = result["automata"]
        taking_part = {vector.synchronise[0] for vector in task.model.vectors}
        usable = [edge for edge in automaton["edges"] if _is_usable(edge, taking_part)]
        ends = _ends(automaton, usable, (failing, goal), reached)
        running = conjunction([negation(reached), negation(failing), negation(goal)])
        for edge in automaton["edges"]:
            guard = edge.get("guard", {}).get("exp", True)
            edge["guard"] = {"exp": conjunction([running, guard])}
            edge["destinations"] = [
                *(_half(destination) for destination in edge["destinations"]),
                _to_goal(edge["location"], reached, 0.5),
            ]
        automaton["edges"] += ends
        result["properties"] = [filter_property("reach", "Pmax", {"op": "F", "exp": reached})]
        return result


def _is_usable(edge: Json, taking_part: set[Any]) -> bool:
    return "action" not in edge or edge["action"] in taking_part


def _half(destination: Json) -> Json:
    probability = destination.get("probability", {}).get("exp", 1)
    half = {"op": "*", "left": 0.5, "right": probability}
    return {**destination, "probability": {"exp": half}}


def _to_goal(location: str, reached: str, probability: float) -> Json:
    assignments = [{"ref": reached, "value": True}]
    chance = {"exp": probability}
    return {"location": location, "probability": chance, "assignments": assignments}


def _ends(
    automaton: Json, usable: list[Json], conditions: tuple[Json, Json], reached: str
) -> list[Json]:
    """Per location, the step to the artificial goal and the loop of a trap."""
    failing, goal = conditions
    edges = []
    for place in automaton["locations"]:
        location = place["name"]
        guards = [
            edge.get("guard", {}).get("exp", True)
            for edge in usable
            if edge["location"] == location
        ]
        over = disjunction([goal, negation(disjunction(guards))])
        stops = conjunction([negation(reached), negation(failing), over])
        trapped = conjunction([negation(reached), failing])
        edges.append(
            {
                "location": location,
                "guard": {"exp": stops},
                "destinations": [_to_goal(location, reached, 1.0)],
            }
        )
        edges.append(
            {
                "location": location,
                "guard": {"exp": trapped},
                "destinations": [{"location": location}],
            }
        )
    return edges
