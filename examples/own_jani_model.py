"""Bring your own JANI model: a thermostat that must not overheat, written as plain data.

``model`` and ``properties`` may as well be paths of files.
"""

from __future__ import annotations

import gymnasium as gym

import safetest_gym  # noqa: F401 - registers the ids


def move(action: str, guard: dict[str, object], change: int, chance: float) -> dict[str, object]:
    """With ``chance`` the temperature changes by twice as much."""
    return {
        "location": "on",
        "action": action,
        "guard": {"exp": guard},
        "destinations": [
            {
                "location": "on",
                "probability": {"exp": probability},
                "assignments": [
                    {"ref": "heat", "value": {"op": "+", "left": "heat", "right": step}}
                ],
            }
            for probability, step in ((1 - chance, change), (chance, 2 * change))
        ],
    }


MODEL: dict[str, object] = {
    "jani-version": 1,
    "name": "thermostat",
    "type": "mdp",
    "actions": [{"name": "warm"}, {"name": "cool"}],
    "variables": [
        {
            "name": "heat",
            "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 20},
            "initial-value": 5,
        }
    ],
    "automata": [
        {
            "name": "device",
            "locations": [{"name": "on"}],
            "initial-locations": ["on"],
            "edges": [
                move("warm", {"op": "≤", "left": "heat", "right": 18}, 1, 0.25),
                move("cool", {"op": "≥", "left": "heat", "right": 2}, -1, 0.25),
            ],
        }
    ],
    "system": {
        "elements": [{"automaton": "device"}],
        "syncs": [{"synchronise": [label], "result": label} for label in ("warm", "cool")],
    },
}


def main() -> None:
    env = gym.make(
        "safetest/Jani-v0",
        model=MODEL,
        failure="heat >= 16",
        goal="heat == 12",
        start="heat <= 8",
        reward=[{"kind": "goal_failure", "goal": 5}, "-0.01 * heat"],
        render_mode="ansi",
    )
    _, info = env.reset(seed=0)
    total = 0.0
    while info["outcome"] is None:
        action = 0 if info["state"][0] < 12 else 1
        _, reward, _, _, info = env.step(action)
        total += float(reward)
    print(env.render())
    print(f"outcome {info['outcome']}, return {total:.2f}")


if __name__ == "__main__":
    main()
