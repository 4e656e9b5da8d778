"""A small model that uses everything, and ways to break it."""

from __future__ import annotations

import copy
from typing import Any

DELETE = object()


def small_model() -> dict[str, Any]:
    return copy.deepcopy(_MODEL)


def changed(keys: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The small model with the value under ``keys`` replaced; a new list index appends."""
    model: Any = small_model()
    item = model
    for key in keys[:-1]:
        item = item[key]
    last = keys[-1]
    if value is DELETE:
        del item[last]
    elif isinstance(item, list) and last == len(item):
        item.append(value)
    else:
        item[last] = value
    return dict(model)


def minimal_model(**changes: Any) -> dict[str, Any]:
    """One automaton, one location, an integer ``x`` from 0 to 9 and an edge that does nothing."""
    model: dict[str, Any] = {
        "jani-version": 1,
        "name": "minimal",
        "type": "mdp",
        "actions": [{"name": "go"}],
        "variables": [variable("x", 0, 9)],
        "automata": [
            {
                "name": "A",
                "locations": [{"name": "l"}],
                "initial-locations": ["l"],
                "edges": [{"location": "l", "action": "go", "destinations": [{"location": "l"}]}],
            }
        ],
        "system": {"elements": [{"automaton": "A"}]},
    }
    model.update(changes)
    return model


def guarded(guard: Any, **changes: Any) -> dict[str, Any]:
    """The minimal model with a guard on its edge."""
    model = minimal_model(**changes)
    model["automata"][0]["edges"][0]["guard"] = {"exp": guard}
    return model


def variable(name: str, lower: Any, upper: Any, initial: Any = 0) -> dict[str, Any]:
    bounds = {"kind": "bounded", "base": "int", "lower-bound": lower, "upper-bound": upper}
    return {"name": name, "type": bounds, "initial-value": initial}


def binary(symbol: str, left: Any, right: Any) -> dict[str, Any]:
    return {"op": symbol, "left": left, "right": right}


_LEFT: dict[str, Any] = {
    "name": "Left",
    "variables": [variable("own", 0, 5)],
    "functions": [
        {
            "name": "shift",
            "type": "int",
            "parameters": [{"name": "n", "type": "int"}],
            "body": binary("+", "n", "own"),
        }
    ],
    "locations": [
        {"name": "near", "transient-values": [{"ref": "cost", "value": binary("*", 2, "x")}]},
        {"name": "far"},
    ],
    "initial-locations": ["near"],
    "edges": [
        {
            "location": "near",
            "action": "go",
            "guard": {"exp": binary("∧", binary("<", "x", "N"), binary("≥", "r", 0.25))},
            "destinations": [
                {
                    "location": "far",
                    "probability": {"exp": "p"},
                    "assignments": [
                        {"ref": "x", "value": binary("+", "x", 1)},
                        {
                            "ref": "own",
                            "index": 1,
                            "value": {"op": "call", "function": "twice", "args": ["x"]},
                        },
                    ],
                },
                {"location": "near", "probability": {"exp": binary("-", 1, "p")}},
            ],
        },
        {
            "location": "far",
            "action": "stop",
            "guard": {"exp": "b"},
            "destinations": [{"location": "near"}],
        },
        {
            "location": "far",
            "guard": {"exp": {"op": "¬", "exp": "b"}},
            "destinations": [{"location": "far", "assignments": [{"ref": "b", "value": True}]}],
        },
    ],
}
_RIGHT: dict[str, Any] = {
    "name": "Right",
    "locations": [{"name": "only"}],
    "initial-locations": ["only"],
    "edges": [
        {
            "location": "only",
            "action": "stop",
            "guard": {"exp": binary("=", "x", 0)},
            "destinations": [
                {
                    "location": "only",
                    "assignments": [
                        {"ref": "r", "value": binary("/", "x", 2)},
                        {"ref": "cost", "value": 3},
                    ],
                }
            ],
        }
    ],
}
_MODEL: dict[str, Any] = {
    "jani-version": 1,
    "name": "small",
    "type": "mdp",
    "metadata": {"author": "us"},
    "features": ["functions", "derived-operators", "state-exit-rewards"],
    "actions": [{"name": "go"}, {"name": "stop"}],
    "constants": [
        {"name": "N", "type": "int", "value": 3},
        {"name": "p", "type": "real", "value": 0.5},
        {
            "name": "M",
            "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 9},
            "value": binary("+", "N", 1),
        },
    ],
    "variables": [
        variable("x", 0, "M"),
        {"name": "b", "type": "bool", "initial-value": False},
        {"name": "r", "type": "real", "initial-value": 0.5},
        {"name": "cost", "type": "real", "transient": True, "initial-value": 0},
    ],
    "functions": [
        {
            "name": "twice",
            "type": "int",
            "parameters": [{"name": "n", "type": "int"}],
            "body": binary("*", 2, "n"),
        }
    ],
    "restrict-initial": {"exp": binary("≤", "x", 2), "comment": "fine"},
    "properties": [
        {
            "name": "reached",
            "expression": {
                "op": "filter",
                "fun": "max",
                "values": {"op": "Pmax", "exp": {"op": "F", "exp": binary("=", "x", "N")}},
                "states": {"op": "initial"},
            },
        }
    ],
    "automata": [_LEFT, _RIGHT],
    "system": {
        "elements": [{"automaton": "Left"}, {"automaton": "Right", "input-enable": ["stop"]}],
        "syncs": [
            {"synchronise": ["go", None], "result": "go"},
            {"synchronise": ["stop", "stop"], "result": "stop"},
        ],
    },
}
