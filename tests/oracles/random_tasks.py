"""Small random tasks: explicit states, labels with chance outcomes, failing and goal states."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from safetest_gym.task import Task, load_task

__all__ = ["grid_task", "random_task"]


def _equals(number: int) -> dict[str, Any]:
    return {"op": "=", "left": "s", "right": number}


def _document(
    name: str, bounds: dict[str, int], actions: list[str], edges: list[Any]
) -> dict[str, Any]:
    """One automaton over variables from 0 up to their bounds."""
    variables = [
        {
            "name": variable,
            "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": bound},
            "initial-value": 0,
        }
        for variable, bound in bounds.items()
    ]
    automaton = {
        "name": "g",
        "locations": [{"name": "l"}],
        "initial-locations": ["l"],
        "edges": edges,
    }
    return {
        "jani-version": 1,
        "name": name,
        "type": "mdp",
        "actions": [{"name": action} for action in actions],
        "variables": variables,
        "automata": [automaton],
        "system": {
            "elements": [{"automaton": "g"}],
            "syncs": [{"synchronise": [action], "result": action} for action in actions],
        },
    }


def random_task(
    seed: int,
    *,
    states: int = 14,
    actions: int = 3,
    mode: Literal["label", "edge"] = "label",
    outcomes: int = 3,
) -> Task:
    """Every state is a start; the last two fail, two others may be goals, some are dead ends."""
    rng = np.random.default_rng(seed)
    edges = []
    for s in range(states):
        for a in range(actions):
            if rng.random() < 0.35:
                continue
            for _ in range(1 if rng.random() < 0.8 else 2):
                count = int(rng.integers(1, outcomes + 1))
                destinations = [
                    {
                        "location": "l",
                        "probability": {"exp": 1 / count},
                        "assignments": [{"ref": "s", "value": int(rng.integers(states))}],
                    }
                    for _ in range(count)
                ]
                edges.append(
                    {
                        "location": "l",
                        "action": f"a{a}",
                        "guard": {"exp": _equals(s)},
                        "destinations": destinations,
                    }
                )
    document = _document(
        f"random {seed}", {"s": states - 1}, [f"a{a}" for a in range(actions)], edges
    )
    goal = f"s = 3 or s = {int(rng.integers(states))}"
    return load_task(
        document,
        failure=f"s >= {states - 2}",
        goal=goal,
        start="s >= 0",
        action_mode=mode,
    )


def grid_task(size: int = 5) -> Task:
    """Two coordinates; wind may push; failing in a corner, goal in the opposite one."""
    directions = {"right": ("x", 1), "left": ("x", -1), "up": ("y", 1), "down": ("y", -1)}
    edges = []
    for name, (variable, step) in directions.items():
        bound = size - 1 if step > 0 else 0
        value = {"op": "+", "left": variable, "right": step}
        other = "y" if variable == "x" else "x"
        pushed = {
            "op": "min",
            "left": {"op": "+", "left": other, "right": 1},
            "right": size - 1,
        }
        edges.append(
            {
                "location": "l",
                "action": name,
                "guard": {"exp": {"op": "≠", "left": variable, "right": bound}},
                "destinations": [
                    {
                        "location": "l",
                        "probability": {"exp": 0.7},
                        "assignments": [{"ref": variable, "value": value}],
                    },
                    {
                        "location": "l",
                        "probability": {"exp": 0.3},
                        "assignments": [
                            {"ref": variable, "value": value},
                            {"ref": other, "value": pushed},
                        ],
                    },
                ],
            }
        )
    document = _document("grid", {"x": size - 1, "y": size - 1}, list(directions), edges)
    corner = size - 1
    return load_task(
        document,
        failure=f"x >= {corner} and y >= {corner}",
        goal="x = 0 and y = 0",
        start=f"x + y <= {size} and x + y >= 1",
    )
