"""Which actions can a policy take in a box?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy
from safetest_gym.verify.intervals import Floats
from safetest_gym.verify.narrowing import Boxes

__all__ = ["Choices", "NetworkScores", "Scores", "TreeScores", "make_scores"]

_ROUNDING = 1e-5
"""Relative difference of sums in float32 from those in float64, with room to spare."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Bounds of all actions' scores per box (n, A), and where to cut undecided boxes.

    ``leads[b]`` is the most that the action asked about can lead over action b, if that
    is known better than from the bounds; (n, A).
    Cutting: values of variable ``column`` from ``cut`` on make a box of their own;
    ``column`` is -1 where no cut would tell more.
    """

    lower: NDArray[np.floating]
    upper: NDArray[np.floating]
    leads: Floats
    column: NDArray[np.int64]
    cut: Floats


class TreeScores:
    """Bounds of an ensemble, tree by tree over the leaves that a box can reach."""

    def __init__(self, policy: TreeEnsemblePolicy) -> None:
        self._interface = policy.interface
        self._base = policy.base_scores
        self._trees = [_PlacedTree(tree, policy.interface) for tree in policy.trees]

    def ask(self, action: int, boxes: Boxes) -> Choices:
        """What is known of the scores in ``boxes``; `Choices` about ``action``."""
        count, outputs = len(boxes[0]), len(self._base)
        features = boxes[0].astype(np.float32), boxes[1].astype(np.float32)
        lower = np.tile(self._base, (count, 1))
        upper = lower.copy()
        order = list(self._interface.order)
        own = order[action]
        leads = np.tile((self._base[own] - self._base).astype(np.float64), (count, 1))
        sizes = np.full(count, float(np.abs(self._base).max(initial=0)))
        widest = np.zeros(count)
        column, cut = np.full(count, -1, np.int64), np.zeros(count)
        for tree in self._trees:
            reached = tree.reached(features)
            low, high = tree.extremes(reached, outputs)
            lower, upper = lower + low, upper + high
            leads += tree.leads(reached, own, outputs)
            sizes += tree.size
            width = (high - low).max(axis=1)
            wider = width > widest
            widest[wider] = width[wider]
            column[wider], cut[wider] = tree.first_open(features, wider)
        leads += _ROUNDING * sizes[:, None]
        return Choices(lower[:, order], upper[:, order], leads[:, order], column, cut)


class _PlacedTree:
    """A tree over the columns of boxes."""

    def __init__(self, tree: Tree, interface: Interface) -> None:
        self._tree = tree
        self._columns = np.array(interface.columns, np.int64)[tree.feature]
        self._leaves = np.flatnonzero(tree.is_leaf)
        self._values = tree.values[self._leaves]
        self._order = [int(node) for node in tree.breadth_first()[0] if tree.left[node] >= 0]
        self._cuts = _double_cuts(tree.threshold)
        self.size = float(np.abs(self._values).max(initial=0))

    def reached(self, features: tuple[NDArray[np.float32], ...]) -> NDArray[np.bool_]:
        """Per box and leaf: can a state of the box be there?"""
        tree = self._tree
        open_ = np.zeros((len(tree.left), len(features[0])), np.bool_)
        open_[0] = True
        for node in self._order:
            column, threshold = self._columns[node], tree.threshold[node]
            open_[tree.left[node]] = open_[node] & (features[0][:, column] < threshold)
            open_[tree.right[node]] = open_[node] & (features[1][:, column] >= threshold)
        return np.ascontiguousarray(open_[self._leaves].T)

    def extremes(
        self, reached: NDArray[np.bool_], outputs: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Least and greatest values over the leaves, (n, K); zeros where it adds nothing."""
        low = np.zeros((len(reached), outputs), np.float32)
        high = low.copy()
        for value in range(self._values.shape[1]):
            output = value if self._tree.output == VECTOR else self._tree.output
            values = self._values[:, value]
            low[:, output] = np.where(reached, values, np.float32(np.inf)).min(axis=1)
            high[:, output] = np.where(reached, values, np.float32(-np.inf)).max(axis=1)
        return low, high

    def leads(self, reached: NDArray[np.bool_], own: int, outputs: int) -> Floats:
        """The most that output ``own`` gains over each other, (n, K)."""
        values = np.zeros((len(self._leaves), outputs))
        if self._tree.output == VECTOR:
            values[:] = self._values
        else:
            values[:, self._tree.output] = self._values[:, 0]
        gains = values[:, [own]] - values
        best = [np.where(reached, gain, -np.inf).max(axis=1) for gain in gains.T]
        return np.stack(best, axis=1)

    def first_open(
        self, features: tuple[NDArray[np.float32], ...], wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Floats]:
        """The uppermost node that does not decide, per wanted box."""
        tree = self._tree
        low, high = features[0][wanted], features[1][wanted]
        rows, node = np.arange(len(low)), np.zeros(len(low), np.int64)
        while True:
            inner = tree.left[node] >= 0
            left = high[rows, self._columns[node]] < tree.threshold[node]
            right = low[rows, self._columns[node]] >= tree.threshold[node]
            moves = inner & (left | right)
            if not moves.any():
                return np.where(inner, self._columns[node], -1), self._cuts[node]
            node = np.where(moves, np.where(left, tree.left[node], tree.right[node]), node)


def _double_cuts(thresholds: NDArray[np.float32]) -> Floats:
    """The least double that becomes at least each threshold in float32."""
    below = np.nextafter(thresholds, np.float32(-np.inf))
    middle = (below.astype(np.float64) + thresholds.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) >= thresholds, middle, np.nextafter(middle, np.inf))


class NetworkScores:
    """Bounds of a network by interval arithmetic, layer by layer."""

    def __init__(self, policy: MlpPolicy) -> None:
        self._policy = policy
        self._columns = list(policy.interface.columns)
        first = np.abs(policy.layers[0].weight).sum(axis=0).astype(np.float64)
        for scaling in policy.scalings:
            first = first * scaling.factor / scaling.scale
        self._weights = first

    def ask(self, action: int, boxes: Boxes) -> Choices:
        """What is known of the scores in ``boxes``; `Choices` about ``action``."""
        low, high = boxes[0][:, self._columns], boxes[1][:, self._columns]
        widths = (high - low) * self._weights
        widest = widths.argmax(axis=1)
        rows = np.arange(len(low))
        column = np.where(widths[rows, widest] > 0, np.array(self._columns)[widest], -1)
        cut = low[rows, widest] / 2 + high[rows, widest] / 2
        for scaling in self._policy.scalings:
            low, high = scaling(low).astype(np.float64), scaling(high).astype(np.float64)
        low, high = low.astype(np.float32).astype(np.float64), high.astype(np.float32)
        high = high.astype(np.float64)
        for layer in self._policy.layers:
            low, high = _through(layer.weight, layer.bias, low, high)
            if layer.activation == "relu":
                low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
            elif layer.activation == "tanh":
                low, high = np.tanh(low) - _ROUNDING, np.tanh(high) + _ROUNDING
        order = list(self._policy.interface.order)
        low, high = low[:, order], high[:, order]
        return Choices(low, high, high[:, [action]] - low, column, cut)


def _through(
    weight: NDArray[np.float32], bias: NDArray[np.float32], low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """A linear layer, with room for sums in float32 in any order."""
    matrix = weight.T.astype(np.float64)
    middle, radius = (low + high) / 2, (high - low) / 2
    reach = np.maximum(np.abs(low), np.abs(high)) @ np.abs(matrix) + np.abs(bias)
    rounding = 2.0**-22 * (len(matrix) + 4)
    spread = radius @ np.abs(matrix) + rounding * reach
    center = middle @ matrix + bias
    return center - spread, center + spread


Scores = TreeScores | NetworkScores


def make_scores(policy: Policy) -> Scores:
    """Bounds for a policy.

    Raises:
        ConfigError: it is neither a tree ensemble nor a plain network.
    """
    if isinstance(policy, TreeEnsemblePolicy):
        return TreeScores(policy)
    if isinstance(policy, MlpPolicy):
        return NetworkScores(policy)
    raise ConfigError(
        f"the abstract method treats tree ensembles and plain networks, not {type(policy).__name__}"
        "; use method='explicit'"
    )
