"""Policies for small tasks, random and careful."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.envs.tasks.line import Line
from safetest_gym.policies import CallablePolicy, Policy, TreeEnsemblePolicy
from safetest_gym.policies.function import RandomPolicy
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.trees import Tree
from safetest_gym.task import Task, load_task
from tests.oracles.policies import ensemble, random_network, random_tree, tree

__all__ = [
    "careful_driver",
    "keen_hitter",
    "line_task",
    "random_ensemble",
    "random_mlp",
    "random_policy",
    "steady_hand",
]

Kind = Literal["hash", "mlp", "python", "trees"]


def random_ensemble(task: Task, seed: int, trees: int = 4) -> TreeEnsemblePolicy:
    """Vector leaves, depth 3."""
    rng = np.random.default_rng(seed)
    grown = [random_tree(rng, task.num_variables, 3, task.num_actions) for _ in range(trees)]
    return ensemble(grown, np.zeros(task.num_actions), Interface.of(task))


def random_mlp(task: Task, seed: int) -> MlpPolicy:
    """Eight hidden neurons."""
    rng = np.random.default_rng(seed)
    drawn = random_network(rng, [task.num_variables, 8, task.num_actions])
    return replace(drawn, interface=Interface.of(task))


def random_policy(task: Task, seed: int, kind: Kind) -> Policy:
    """A policy of a kind."""
    if kind == "trees":
        return random_ensemble(task, seed)
    if kind == "mlp":
        return random_mlp(task, seed)
    if kind == "hash":
        return RandomPolicy(Interface.of(task), seed)

    def function(values: dict[str, float], allowed: tuple[str, ...]) -> str:
        return allowed[(int(sum(values.values())) * 7 + seed) % len(allowed)]

    return CallablePolicy(function, Interface.of(task))


def line_task(line: Line) -> Task:
    """A bundled line as a task."""
    return load_task({**line.model(), "properties": line.properties()})


def careful_driver(task: Task) -> TreeEnsemblePolicy:
    """Drives a line one location at a time and stops in each; safe where any policy is."""
    velocity = [variable.name for variable in task.variables].index("truck_vel_0")
    names = [action.partition("_")[0] for action in task.actions]

    def scores(**given: float) -> list[float]:
        return [given.get(name, 0.0) for name in names]

    leaves = [scores(acc=3, dec=4), scores(acc=3), scores(dec=3, acc=2, move=1)]
    stump = tree(
        [1, -1, 3, -1, -1],
        [2, -1, 4, -1, -1],
        [velocity, 0, velocity, 0, 0],
        [-0.5, 0, 0.5, 0, 0],
        [scores(), leaves[0], scores(), leaves[1], leaves[2]],
    )
    base = scores(park=100, pick=50, drop=50)
    return ensemble([stump], base, Interface.of(task))


def steady_hand(task: Task) -> TreeEnsemblePolicy:
    """Holds the inverted pendulum: against angle plus a part of its velocity, in steps."""
    names = [variable.name for variable in task.variables]
    angle, spin = names.index("angle"), names.index("angular_velocity")
    trees = [
        _staircase(angle, np.linspace(-0.4, 0.4, 9), 4.0),
        _staircase(spin, np.linspace(-1.6, 1.6, 9), 1.0),
    ]
    return ensemble(trees, [0.0, 0.0, 0.15], Interface.of(task))


def keen_hitter(task: Task) -> TreeEnsemblePolicy:
    """Hits the bouncing ball whenever that makes it faster."""
    velocity = [variable.name for variable in task.variables].index("velocity")
    scores = [[0, 0], [1, 0], [0, 1]]
    stump = tree([1, -1, -1], [2, -1, -1], [velocity, 0, 0], [1.9, 0, 0], scores)
    return ensemble([stump], [0, 0], Interface.of(task))


def _staircase(column: int, edges: NDArray[np.float64], slope: float) -> Tree:
    """A balanced tree: the slope times the value for turning left, its opposite for right."""
    left: list[int] = []
    right: list[int] = []
    feature: list[int] = []
    threshold: list[float] = []
    values: list[list[float]] = []

    def grow(first: int, last: int) -> int:
        node = len(left)
        for part, value in ((left, -1), (right, -1), (feature, 0)):
            part.append(value)
        threshold.append(0.0)
        values.append([0.0, 0.0, 0.0])
        if first == last:
            ends = edges[max(first - 1, 0)], edges[min(first, len(edges) - 1)]
            score = slope * float(np.mean(ends))
            values[node] = [score, -score, 0.0]
            return node
        middle = (first + last) // 2
        feature[node], threshold[node] = column, float(edges[middle])
        left[node] = grow(first, middle)
        right[node] = grow(middle + 1, last)
        return node

    grow(0, len(edges))
    return tree(left, right, feature, threshold, values)
