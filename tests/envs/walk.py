"""A corridor in which every kind of end is near, for tests of the environments.

From x <= 4 on to the goal at 7; 8 is a dead end, 9 fails. At 3 one can jump to 8 or 9.
"""

from __future__ import annotations

from typing import Any

from safetest_gym.envs.tasks.build import (
    Json,
    add,
    both,
    bounded,
    destination,
    edge,
    eq,
    ge,
    le,
    model,
    mul,
    planning_property,
    sub,
    variable,
)

LEFT, RIGHT, JUMP = range(3)
GOAL, DEAD_END, FAILING = 7, 8, 9


def walk_model(upper: int = 9) -> Json:
    edges = [
        edge("left", both(ge("x", 1), le("x", 7)), [destination({"x": sub("x", 1)})]),
        edge(
            "right",
            le("x", 7),
            [destination({"x": add("x", 1)}, 0.75), destination({"x": add("x", 2)}, 0.25)],
        ),
        edge("jump", eq("x", 3), [destination({"x": 9}, 0.5), destination({"x": 8}, 0.5)]),
    ]
    return model(
        "walk",
        actions=["left", "right", "jump"],
        variables=[variable("x", bounded(0, upper), 0), variable("steps", bounded(-5, 5), 2)],
        edges=edges,
    )


def walk_properties(**changes: Any) -> list[Json]:
    terms: dict[str, Any] = {
        "goal": eq("x", GOAL),
        "failure": eq("x", FAILING),
        "start": both(le("x", 4), eq("steps", 2)),
        "goal_potential": "x",
        "step_reward": mul(0.125, "x"),
    }
    return [planning_property("walk-safety", **(terms | changes))]


def at(x: int) -> dict[str, Any]:
    """Reset options that start at ``x``."""
    return {"state": {"x": x, "steps": 2}}
