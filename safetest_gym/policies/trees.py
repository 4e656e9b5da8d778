"""Gradient-boosted tree ensembles as policies, bit-exact with XGBoost's margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.kernel_policy import KernelPolicy, native_scores
from safetest_gym.policies.native import NativePolicy, pack
from safetest_gym.policies.policy import check_batch

__all__ = ["VECTOR", "Tree", "TreeEnsemblePolicy"]

VECTOR = -1
"""`Tree.output` of a tree whose leaves have one value per output."""

_STEPS_IN_LOCKSTEP = 12
"""Trees at most this deep are walked a fixed number of steps."""

_NODE = np.dtype([("threshold", "<f4"), ("feature", "<i4"), ("left", "<i4"), ("row", "<i4")])


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A binary tree; node 0 is the root, features below the threshold go left.

    Attributes:
        left, right: children per node, int32; -1 at leaves.
        feature: int32 index into the policy's variables; 0 at leaves.
        threshold: float32; 0 at leaves.
        values: float32, shape (nodes, 1) or (nodes, K); zeros at inner nodes.
        output: the output that scalar leaves add to, or `VECTOR`.
        gain, cover: XGBoost's loss change and Hessian sum per node, kept for its files.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    values: NDArray[np.float32]
    output: int = VECTOR
    gain: NDArray[np.float32] | None = None
    cover: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        size = len(self.left)
        for name in ("left", "right", "feature", "threshold", "values", "gain", "cover"):
            value = getattr(self, name)
            kind = np.int32 if name in ("left", "right", "feature") else np.float32
            array = np.zeros(size, kind) if value is None else np.array(value, dtype=kind)
            if len(array) != size or not np.isfinite(array).all():
                raise PolicyError(f"a tree's {name} must be {size} finite values")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.values.ndim != 2:
            raise PolicyError(f"a tree's values must be (nodes, K), got {self.values.shape}")
        if self.output >= 0 and self.values.shape[1] != 1:
            raise PolicyError("a tree of one output must have one value per leaf")
        self.breadth_first()

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf."""
        return self.left < 0

    def breadth_first(self) -> tuple[NDArray[np.int64], int]:
        """Nodes by level, siblings adjacent, and the depth; checks that this is a tree."""
        order, level, depth = [0], [0], -1
        while level:
            depth += 1
            below = []
            for node in level:
                if self.left[node] >= 0:
                    below += [int(self.left[node]), int(self.right[node])]
            order += below
            level = below
            if len(order) > len(self.left) or any(not 0 < n < len(self.left) for n in below):
                raise PolicyError("the nodes of a tree do not form a tree")
        if len(set(order)) != len(self.left):
            raise PolicyError("the nodes of a tree do not form a tree")
        return np.array(order, dtype=np.int64), depth


@dataclass(frozen=True, eq=False)
class TreeEnsemblePolicy(KernelPolicy):
    """A sum of trees over base scores; the sums are the actions' scores.

    Attributes:
        base_scores: float32, one per output.
    """

    trees: tuple[Tree, ...]
    base_scores: NDArray[np.float32]
    interface: Interface

    def __post_init__(self) -> None:
        base = np.array(self.base_scores, dtype=np.float32)
        base.flags.writeable = False
        object.__setattr__(self, "base_scores", base)
        outputs, features = self.interface.num_actions, len(self.interface.variables)
        if base.shape != (outputs,) or not np.isfinite(base).all():
            raise PolicyError(
                f"the ensemble has {base.size} base scores, the interface {outputs} actions: "
                f"{', '.join(self.interface.actions)}"
            )
        for i, tree in enumerate(self.trees):
            if not VECTOR <= tree.output < outputs:
                raise PolicyError(f"tree {i} adds to output {tree.output} of {outputs}")
            if tree.output == VECTOR and tree.values.shape[1] != outputs:
                raise PolicyError(f"tree {i} has {tree.values.shape[1]} values of {outputs}")
            if tree.feature.min() < 0 or tree.feature.max() >= features:
                raise PolicyError(
                    f"tree {i} reads feature {tree.feature.max()} of {features} variables: "
                    f"{', '.join(self.interface.variables)}"
                )

    def scores(self, states: NDArray[np.generic]) -> NDArray[np.float32]:
        """Margins, shape (n, A), by the task's action numbers."""
        check_batch(self.interface, states)
        scores = native_scores(self.native(), states, self.interface.num_actions)
        return scores[:, list(self.interface.order)]

    def leaves(self, states: NDArray[np.generic]) -> NDArray[np.int64]:
        """The output configuration: per state and tree the leaf's node, shape (n, T)."""
        from safetest_gym.engine.kernels.trees import leaves_kernel

        check_batch(self.interface, states)
        values = np.ascontiguousarray(states, dtype=np.float64)
        out = np.empty((len(values), len(self.trees)), dtype=np.int64)
        leaves_kernel(self.native().data_address, values, out)
        if self.trees:
            out[:] = np.concatenate([tree.breadth_first()[0] for tree in self.trees])[out]
        return out

    def _pack(self) -> NativePolicy:
        table, nodes, values = [], [], []
        first = row = 0
        for tree in self.trees:
            order, depth = tree.breadth_first()
            nodes.append(_packed_nodes(tree, order, first, row))
            values.append(tree.values[order][tree.is_leaf[order]].ravel())
            steps = depth if depth <= _STEPS_IN_LOCKSTEP else -1
            table.append((first, steps, tree.output, tree.values.shape[1]))
            first += len(order)
            row += len(values[-1])
        own: list[int | NDArray[np.generic]] = [
            len(self.trees),
            np.array(table, dtype=np.int64),
            _joined(nodes, _NODE),
            _joined(values, np.dtype(np.float32)),
            self.base_scores,
        ]
        return NativePolicy("trees", pack(self.interface, (), len(self.base_scores), own))


def _packed_nodes(
    tree: Tree, order: NDArray[np.int64], first: int, row: int
) -> NDArray[np.generic]:
    """The tree's nodes in the kernel's layout, numbered from ``first``."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = first + np.arange(len(order))
    leaf = tree.is_leaf[order]
    nodes = np.zeros(len(order), dtype=_NODE)
    nodes["threshold"] = np.where(leaf, np.inf, tree.threshold[order])
    nodes["feature"] = np.where(leaf, 0, tree.feature[order])
    nodes["left"] = np.where(leaf, place[order], place[tree.left[order]])
    nodes["row"] = np.where(leaf, row + (np.cumsum(leaf) - 1) * tree.values.shape[1], 0)
    return nodes


def _joined(parts: Sequence[NDArray[np.generic]], kind: np.dtype) -> NDArray[np.generic]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
