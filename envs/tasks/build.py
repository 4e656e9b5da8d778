"""Small helpers to write JANI documents as plain Python data.

Every function returns JSON-ready data; expressions are strings (identifiers), numbers,
bools or dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

__all__ = [
    "Expr",
    "Json",
    "add",
    "at_location",
    "both",
    "bounded",
    "destination",
    "div",
    "edge",
    "either",
    "eq",
    "ge",
    "gt",
    "ite",
    "le",
    "lt",
    "maximum",
    "minimum",
    "model",
    "mul",
    "ne",
    "negate",
    "planning_property",
    "sub",
    "total",
    "variable",
]

Json = dict[str, Any]
Expr = str | bool | int | float | Json


def _binary(op: str, left: Expr, right: Expr) -> Expr:
    return {"op": op, "left": left, "right": right}


def eq(left: Expr, right: Expr) -> Expr:
    """Left equals right."""
    return _binary("=", left, right)


def ne(left: Expr, right: Expr) -> Expr:
    """Left differs from right."""
    return _binary("≠", left, right)


def le(left: Expr, right: Expr) -> Expr:
    """Left is at most right."""
    return _binary("≤", left, right)


def lt(left: Expr, right: Expr) -> Expr:
    """Left is less than right."""
    return _binary("<", left, right)


def ge(left: Expr, right: Expr) -> Expr:
    """Left is at least right."""
    return _binary("≥", left, right)


def gt(left: Expr, right: Expr) -> Expr:
    """Left is more than right."""
    return _binary(">", left, right)


def add(left: Expr, right: Expr) -> Expr:
    """Left + right."""
    return _binary("+", left, right)


def sub(left: Expr, right: Expr) -> Expr:
    """Left - right."""
    return _binary("-", left, right)


def mul(left: Expr, right: Expr) -> Expr:
    """Left * right."""
    return _binary("*", left, right)


def div(left: Expr, right: Expr) -> Expr:
    """Left / right, always real."""
    return _binary("/", left, right)


def minimum(left: Expr, right: Expr) -> Expr:
    """The smaller one."""
    return _binary("min", left, right)


def maximum(left: Expr, right: Expr) -> Expr:
    """The larger one."""
    return _binary("max", left, right)


def negate(exp: Expr) -> Expr:
    """Not exp."""
    return {"op": "¬", "exp": exp}


def ite(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """If condition then … else …."""
    return {"op": "ite", "if": condition, "then": then, "else": otherwise}


def both(*conditions: Expr) -> Expr:
    """The conjunction; true if there is none."""
    return reduce(lambda a, b: _binary("∧", a, b), conditions) if conditions else True


def either(*conditions: Expr) -> Expr:
    """The disjunction; false if there is none."""
    return reduce(lambda a, b: _binary("∨", a, b), conditions) if conditions else False


def total(terms: Iterable[Expr]) -> Expr:
    """The sum; 0 if there is none."""
    items = list(terms)
    return reduce(add, items) if items else 0


def bounded(lower: Expr, upper: Expr, base: str = "int") -> Json:
    """A bounded type."""
    return {"kind": "bounded", "base": base, "lower-bound": lower, "upper-bound": upper}


def variable(name: str, kind: Expr, initial: Expr | None = None) -> Json:
    """A variable declaration; without ``initial`` every value is initial."""
    declared: Json = {"name": name, "type": kind}
    return declared if initial is None else {**declared, "initial-value": initial}


def destination(
    assignments: Mapping[str, Expr], probability: Expr | None = None, location: str = "here"
) -> Json:
    """A destination; assignments are simultaneous."""
    result: Json = {
        "location": location,
        "assignments": [{"ref": ref, "value": value} for ref, value in assignments.items()],
    }
    return result if probability is None else {**result, "probability": {"exp": probability}}


def edge(
    action: str | None, guard: Expr, destinations: Sequence[Json], location: str = "here"
) -> Json:
    """An edge; action None is silent."""
    result: Json = {
        "location": location,
        "guard": {"exp": guard},
        "destinations": list(destinations),
    }
    return result if action is None else {"action": action, **result}


def model(
    name: str,
    *,
    actions: Sequence[str],
    variables: Sequence[Json],
    edges: Sequence[Json],
    constants: Mapping[str, int | float | bool] | None = None,
    locations: Sequence[str] = ("here",),
) -> Json:
    """A model of one automaton whose labels all synchronise with themselves.

    Its type is ``mdp`` if a destination has a probability, else ``lts``.
    """
    random = any("probability" in d for e in edges for d in e["destinations"])
    return {
        "jani-version": 1,
        "name": name,
        "type": "mdp" if random else "lts",
        "actions": [{"name": action} for action in actions],
        "constants": [{"name": key, **_typed(value)} for key, value in (constants or {}).items()],
        "variables": list(variables),
        "automata": [
            {
                "name": "main",
                "locations": [{"name": location} for location in locations],
                "initial-locations": [locations[0]],
                "edges": list(edges),
            }
        ],
        "system": {
            "elements": [{"automaton": "main"}],
            "syncs": [{"synchronise": [action], "result": action} for action in actions],
        },
    }


def _typed(value: bool | int | float) -> Json:
    """Type and value of a constant, as plain JSON has them."""
    if isinstance(value, bool | int):
        return {"type": "bool" if isinstance(value, bool) else "int", "value": value}
    return {"type": "real", "value": float(value)}


def at_location(condition: Expr, location: str) -> Json:
    """A state condition that also fixes where the automaton is."""
    place = {"automaton": "main", "location": location}
    return {"op": "state-condition", "locations": [place], "exp": condition}


def planning_property(
    name: str,
    *,
    goal: Expr,
    failure: Expr,
    start: Expr | Sequence[Mapping[str, int | float | bool]],
    goal_potential: Expr | None = None,
    step_reward: Expr | None = None,
) -> Json:
    """A ``PA`` property.

    Goal, failure and start are expressions or what `at_location` gives; ``start`` can also
    be a list of states.
    """
    objective: Json = {"op": "objective", "goal": _condition(goal)}
    if goal_potential is not None:
        objective["goal-potential"] = goal_potential
    if step_reward is not None:
        objective["step-reward"] = step_reward
        objective["accumulate"] = ["steps"]
    states: Json
    if isinstance(start, Sequence) and not isinstance(start, str):
        rows = [
            {"variables": [{"var": var, "value": value} for var, value in row.items()]}
            for row in start
            if isinstance(row, Mapping)
        ]
        states = {"op": "states-values", "values": rows}
    else:
        states = _condition(start)
    return {
        "name": name,
        "expression": {
            "op": "PA",
            "start": states,
            "reach": _condition(failure),
            "objective": objective,
        },
    }


def _condition(exp: Any) -> Json:
    done = isinstance(exp, dict) and exp.get("op") == "state-condition"
    return exp if done else {"op": "state-condition", "exp": exp}
