"""Slow twins of the policy kernels in plain Python, and random policies to compare on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies import Interface, Layer, MlpPolicy, Tree, TreeEnsemblePolicy

__all__ = [
    "NamedVariable",
    "Names",
    "best_action",
    "ensemble",
    "interface",
    "layer",
    "margins",
    "network_scores",
    "random_masks",
    "random_network",
    "random_states",
    "random_tree",
    "tree",
    "walk",
]


@dataclass(frozen=True)
class NamedVariable:
    """All that an interface wants to know of a variable."""

    name: str


@dataclass(frozen=True)
class Names:
    """All that an interface wants to know of a task."""

    names: tuple[str, ...]
    actions: tuple[str, ...]

    @property
    def variables(self) -> tuple[NamedVariable, ...]:
        return tuple(NamedVariable(name) for name in self.names)


def interface(features: int, actions: int) -> Interface:
    """Variables v0, v1, ... and actions a0, a1, ..."""
    return Interface(
        tuple(f"v{i}" for i in range(features)), tuple(f"a{i}" for i in range(actions))
    )


def layer(weight: Any, bias: Any, activation: Any = "identity") -> Layer:
    """A layer of numbers of any kind."""
    return Layer(np.asarray(weight, np.float32), np.asarray(bias, np.float32), activation)


def tree(
    left: Any, right: Any, feature: Any, threshold: Any, values: Any, output: int = -1
) -> Tree:
    """A tree of numbers of any kind."""
    children = np.asarray(left, np.int32), np.asarray(right, np.int32)
    tests = np.asarray(feature, np.int32), np.asarray(threshold, np.float32)
    return Tree(*children, *tests, np.asarray(values, np.float32), output)


def ensemble(trees: Sequence[Tree], base_scores: Any, names: Interface) -> TreeEnsemblePolicy:
    """An ensemble of numbers of any kind."""
    return TreeEnsemblePolicy(tuple(trees), np.asarray(base_scores, np.float32), names)


def random_states(rng: np.random.Generator, count: int, features: int) -> NDArray[np.int64]:
    return rng.integers(-3, 12, (count, features))


def random_masks(rng: np.random.Generator, count: int, actions: int) -> NDArray[np.bool_]:
    masks = rng.random((count, actions)) < 0.6
    masks[np.arange(count), rng.integers(actions, size=count)] = True
    return masks


def best_action(scores: Sequence[float], mask: Sequence[bool]) -> int:
    """The first of the applicable actions with the highest score."""
    allowed = [a for a, ok in enumerate(mask) if ok]
    highest = max(scores[a] for a in allowed)
    return next(a for a in allowed if scores[a] == highest)


def random_network(
    rng: np.random.Generator, sizes: Sequence[int], activation: str = "relu"
) -> MlpPolicy:
    layers = []
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        weight = rng.normal(size=(outputs, inputs)) / math.sqrt(inputs)
        name = "identity" if i == len(sizes) - 2 else activation
        layers.append(layer(weight, rng.normal(size=outputs), name))
    return MlpPolicy(tuple(layers), interface(sizes[0], sizes[-1]))


def network_scores(policy: MlpPolicy, state: Sequence[float]) -> list[float]:
    """Scores in float64, neuron by neuron; the interface must be in the task's order."""
    values = [float(np.float32(value)) for value in state]
    for part in policy.layers:
        sums = [
            float(bias) + sum(float(w) * x for w, x in zip(row, values, strict=True))
            for row, bias in zip(part.weight, part.bias, strict=True)
        ]
        if part.activation == "relu":
            sums = [max(value, 0.0) for value in sums]
        elif part.activation == "tanh":
            sums = [math.tanh(value) for value in sums]
        values = sums
    return values


def random_tree(
    rng: np.random.Generator, features: int, depth: int, width: int = 1, output: int = -1
) -> Tree:
    """A tree grown by chance, its nodes numbered in the order they were made."""
    left, right, feature, threshold = [-1], [-1], [0], [0.0]
    open_nodes = [(0, 0)]
    while open_nodes:
        node, level = open_nodes.pop(int(rng.integers(len(open_nodes))))
        if level == depth or rng.random() < 0.2:
            continue
        left[node], right[node] = len(left), len(left) + 1
        feature[node] = int(rng.integers(features))
        threshold[node] = float(rng.integers(-6, 20)) / 2
        for child in (left[node], right[node]):
            open_nodes.append((child, level + 1))
            left.append(-1)
            right.append(-1)
            feature.append(0)
            threshold.append(0.0)
    values = rng.normal(size=(len(left), width))
    values[np.array(left) >= 0] = 0
    return tree(left, right, feature, threshold, values, output)


def walk(grown: Tree, state: Sequence[float]) -> int:
    """The leaf a state reaches."""
    node = 0
    while grown.left[node] >= 0:
        goes_left = np.float32(state[grown.feature[node]]) < grown.threshold[node]
        node = int(grown.left[node] if goes_left else grown.right[node])
    return node


def margins(policy: TreeEnsemblePolicy, state: Sequence[float]) -> list[np.float32]:
    """Base scores, then trees in order, all sums in float32."""
    sums = list(policy.base_scores)
    for grown in policy.trees:
        values = grown.values[walk(grown, state)]
        outputs = range(len(sums)) if grown.output < 0 else [grown.output]
        for value, output in zip(values, outputs, strict=True):
            sums[output] = np.float32(sums[output] + value)
    return sums
