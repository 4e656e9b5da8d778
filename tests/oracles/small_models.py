"""Small JANI documents written by hand, and the interpreter of one."""

from __future__ import annotations

from typing import Any

from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.jani import read_model

__all__ = [
    "UNDEFINED",
    "assign",
    "automaton",
    "binary",
    "bounded",
    "destination",
    "edge",
    "interpreter",
    "less",
    "plus",
    "single",
]

Json = Any


def binary(operator: str, left: Json, right: Json) -> Json:
    """``left operator right``."""
    return {"op": operator, "left": left, "right": right}


def less(left: Json, right: Json) -> Json:
    """``left < right``."""
    return binary("<", left, right)


def plus(left: Json, right: Json) -> Json:
    """``left + right``."""
    return binary("+", left, right)


UNDEFINED = less(binary("/", 1, "x"), 1)
"""Has no value where x is 0."""


def bounded(name: str, upper: int, initial: int | None = 0, **more: Json) -> Json:
    """An int variable from 0."""
    type_ = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": upper}
    start = {} if initial is None else {"initial-value": initial}
    return {"name": name, "type": type_, **start, **more}


def assign(name: str, value: Json, index: int = 0) -> Json:
    """``name := value``."""
    return {"ref": name, "value": value, "index": index}


def destination(*assignments: Json, probability: Json = None, to: str = "l") -> Json:
    """One destination."""
    chance = {} if probability is None else {"probability": {"exp": probability}}
    return {"location": to, "assignments": list(assignments), **chance}


def edge(*destinations: Json, action: str | None = "a", guard: Json = True, at: str = "l") -> Json:
    """An edge; without destinations it changes nothing."""
    label = {} if action is None else {"action": action}
    return {
        "location": at,
        "guard": {"exp": guard},
        "destinations": list(destinations) or [destination()],
        **label,
    }


def automaton(name: str, *edges: Json, **more: Json) -> Json:
    """An automaton with one location ``l``."""
    places = {"locations": [{"name": "l"}], "initial-locations": ["l"]}
    return {"name": name, **places, "edges": list(edges), **more}


def interpreter(
    variables: list[Json], automata: list[Json], syncs: list[Json] | None = None, **more: Json
) -> Interpreter:
    """A model whose automata all take part in ``a`` and ``b``, unless ``syncs`` are given."""
    if syncs is None:
        syncs = [{"synchronise": [name] * len(automata), "result": name} for name in ("a", "b")]
    elements = [{"automaton": automaton["name"]} for automaton in automata]
    document = {
        "jani-version": 1,
        "name": "small",
        "type": "mdp",
        "features": ["derived-operators"],
        "actions": [{"name": name} for name in ("a", "b", "both")],
        "variables": variables,
        "automata": automata,
        "system": {"elements": elements, "syncs": syncs},
        "properties": [],
        **more,
    }
    return Interpreter(read_model(document))


def single(variables: list[Json], *edges: Json, **more: Json) -> Interpreter:
    """A model of one automaton."""
    return interpreter(variables, [automaton("A", *edges)], **more)
