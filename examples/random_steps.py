"""Load a model, print what it says, and walk through it at random."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from safetest_gym import Task, load_task

MODEL = Path(__file__).parent / "shuttle.jani"


def walk(task: Task, rng: np.random.Generator, most_steps: int) -> None:
    """Take random applicable actions until the run ends."""
    state = task.initial.sample(1, rng)[0]
    for _ in range(most_steps):
        print("   ", task.as_dict(state))
        applicable = np.flatnonzero(task.applicable(state))
        if task.is_failing(state):
            print("the run failed")
            return
        if task.is_goal(state):
            print("the goal is reached")
            return
        if applicable.size == 0:
            print("nothing is left to do")
            return
        action = rng.choice(applicable)
        print(task.actions[action])
        state = task.step_many(state[np.newaxis], np.array([action]), rng)[0]
    print(f"still going after {most_steps} steps")


def main() -> None:
    task = load_task(MODEL)
    print(task.describe())
    walk(task, np.random.default_rng(seed=1), most_steps=100)


if __name__ == "__main__":
    main()
