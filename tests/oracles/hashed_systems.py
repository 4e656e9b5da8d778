"""Any number of random systems in one small model: its edges compute them by hashing.

A state is (system, place); systems have different sizes, densities, numbers of outcomes,
goals (some of which fail) and dead ends (some of which fail). Compiling the model once
serves all of them, which 100,000 models would not allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.task import Task, load_task
from tests.oracles.fixpoint import System

__all__ = ["hashed_task", "states_of", "systems_of"]

Json = Any
SYSTEMS = 10_000_000


def _op(symbol: str, left: Json, right: Json) -> Json:
    return {"op": symbol, "left": left, "right": right}


def _hash(*parts: Json) -> Json:
    """Below 9973, and hard to foresee."""
    value: Json = 17
    for number, part in enumerate(parts):
        mixed = _op("+", _op("*", value, 7919 + 2 * number), _op("*", part, 104_729))
        value = _op("%", _op("*", mixed, _op("+", _op("%", mixed, 9941), 3)), 9973)
    return value


def _below(limit: Json, *parts: Json) -> Json:
    return _op("%", _hash(*parts), limit)


def _places(most: int) -> Json:
    """How many places a system has: from 2 to ``most``."""
    return _op("+", 2, _op("%", "system", most - 1))


def _edge(action: int, edge: int, places: int) -> Json:
    """One enabled in some places only, with one to three outcomes."""
    key = (10 * action + edge, "system", "place")
    density = _op("+", 3, _below(6, 99, "system"))
    outcomes = _op("+", 1, _below(3, 7, *key))
    destinations = []
    for number in range(3):
        there = _op("<", number, outcomes)
        probability = {"op": "ite", "if": there, "then": _op("/", 1, outcomes), "else": 0}
        target = _below(_places(places), 31 + number, *key)
        destinations.append(
            {
                "location": "here",
                "probability": {"exp": probability},
                "assignments": [{"ref": "place", "value": target}],
            }
        )
    return {
        "location": "here",
        "action": f"a{action}",
        "guard": {"exp": _op("<", _below(10, 3, *key), density if edge == 0 else 2)},
        "destinations": destinations,
    }


def hashed_task(
    *,
    places: int = 9,
    actions: int = 3,
    mode: Literal["label", "edge"] = "label",
    kind: Literal["mdp", "dtmc"] = "mdp",
) -> Task:
    """All systems with up to so many places; the first action's label has two edges."""
    names = [f"a{a}" for a in range(actions)]
    edges = [_edge(a, 0, places) for a in range(actions)] + [_edge(0, 1, places)]
    if kind == "dtmc":
        edges = edges[:1]
    document = {
        "jani-version": 1,
        "name": "hashed systems",
        "type": kind,
        "actions": [{"name": name} for name in names],
        "variables": [
            _variable("system", SYSTEMS),
            _variable("place", places - 1),
        ],
        "automata": [
            {
                "name": "all",
                "locations": [{"name": "here"}],
                "initial-locations": ["here"],
                "edges": edges,
            }
        ],
        "system": {
            "elements": [{"automaton": "all"}],
            "syncs": [{"synchronise": [name], "result": name} for name in names],
        },
    }
    failing = _op("<", _below(9, 55, "system", "place"), _op("+", 1, _below(3, 5, "system")))
    goal = _op("<", _below(9, 77, "system", "place"), _below(3, 6, "system"))
    return load_task(
        document,
        failure={"op": "state-condition", "exp": failing},
        goal={"op": "state-condition", "exp": goal},
        action_mode=mode,
    )


def _variable(name: str, upper: int) -> Json:
    kind = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": upper}
    return {"name": name, "type": kind, "initial-value": 0}


def states_of(numbers: Sequence[int], places: int = 9) -> NDArray[np.int64]:
    """All states of systems, (n, 2), system by system."""
    rows = [(system, place) for system in numbers for place in range(2 + system % (places - 1))]
    return np.array(rows, np.int64)


def systems_of(task: Task, states: NDArray[np.int64]) -> list[System]:
    """The systems that `states_of` lists, as explicit ones."""
    kinds = task.classify(states).tolist()
    engine = task.engine
    expansion = engine.expand(engine.pack(states))
    places = engine.unpack(expansion.states)[:, 1].tolist()
    numbers = expansion.number.tolist()
    systems: dict[int, tuple[list[bool], list[bool], list[dict[int, set[int]]]]] = {}
    for i, system in enumerate(states[:, 0].tolist()):
        actions: dict[int, set[int]] = {}
        first = int(expansion.first[i])
        for row in range(first, int(expansion.first[i + 1])):
            label = int(np.searchsorted(expansion.ends[i], row - first, side="right"))
            action = {0: numbers[row], 1: label, 2: 0}[task.granularity]
            actions.setdefault(action, set()).add(places[row])
        failing, goal, per_state = systems.setdefault(system, ([], [], []))
        failing.append(bool(kinds[i] & 1))
        goal.append(bool(kinds[i] & 2))
        per_state.append(actions)
    return [System(*parts) for parts in systems.values()]
