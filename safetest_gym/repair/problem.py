"""Repair as an optimisation problem: scores are linear in what may change.

For every group there must be a good action that beats all its bad actions by a margin.
Weak and strong repair, and decisions to keep, differ only in which actions these are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import SafetestError
from safetest_gym.repair.requests import FaultSet, KeepSet

__all__ = ["Features", "RepairError", "RepairProblem", "Variant", "fault_masks", "repair_problem"]

Variant = Literal["weak", "strong"]

_LEAST_KEEP_MARGIN = 1e-5
"""Above what sums in float32 can be off; a narrower decision is widened to it."""


class RepairError(SafetestError, RuntimeError):
    """A policy that cannot be repaired as asked.

    Attributes:
        faults: rows of the fault set that conflict, or cannot be fixed at all.
    """

    def __init__(self, message: str, *, faults: NDArray[np.int64] | None = None) -> None:
        super().__init__(message)
        self.faults = np.zeros(0, np.int64) if faults is None else faults


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Per state i: ``score[a] = base[i, a] + sum_k value[i, k] * change[index[i, k], a]``.

    Attributes:
        index: int32 (n, T), rows of ``change``.
        value: float64 (n, T).
        base: float64 (n, A), the scores before the repair.
        allowed: bool (J, A), the entries of ``change`` that exist.
    """

    index: NDArray[np.int32]
    value: NDArray[np.float64]
    base: NDArray[np.float64]
    allowed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: NDArray[np.int64]) -> Features:
        """The same for some of the states."""
        return Features(self.index[rows], self.value[rows], self.base[rows], self.allowed)

    def keys(self) -> list[bytes]:
        """Equal for two states exactly if no change can tell them apart."""
        both = np.concatenate([self.index.view(np.uint8), self.value.view(np.uint8)], axis=1)
        return [row.tobytes() for row in both]

    def scores(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, A) under a change (J, A)."""
        from safetest_gym.engine.kernels.repair import scores_kernel

        scores = np.empty_like(self.base)
        scores_kernel(self.index, self.value, self.base, change, scores)
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class RepairProblem:
    """Groups of equal demands; shapes (G, ...).

    Attributes:
        good, bad: masks (G, A): some good action must beat every bad one.
        margin: by how much.
        weight: price of one unit of violation, infinite where there must be none.
        group: int64, per fault and then per keep its group.
        num_faults: how many rows of ``group`` are faults.
    """

    features: Features
    good: NDArray[np.bool_]
    bad: NDArray[np.bool_]
    margin: NDArray[np.float64]
    weight: NDArray[np.float64]
    group: NDArray[np.int64]
    num_faults: int

    def __len__(self) -> int:
        return len(self.good)

    @property
    def num_actions(self) -> int:
        """Outputs of the policy."""
        return int(self.good.shape[1])

    @property
    def hard(self) -> NDArray[np.bool_]:
        """Groups that must hold."""
        return np.isinf(self.weight)

    def take(self, groups: NDArray[np.int64]) -> RepairProblem:
        """The problem of some groups alone; it knows no faults."""
        return RepairProblem(
            self.features.take(groups),
            self.good[groups],
            self.bad[groups],
            self.margin[groups],
            self.weight[groups],
            np.zeros(0, np.int64),
            0,
        )

    def best_good(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Per group the good action with the highest score (G, A)."""
        best = np.where(self.good, scores, -np.inf).argmax(axis=1)
        return np.asarray(best, dtype=np.int64)

    def shortfall(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much each group's best good action misses its margin; at most 0 where it holds."""
        from safetest_gym.engine.kernels.repair import shortfall_kernel

        features, shortfall = self.features, np.empty(len(self))
        demands = (features.index, features.value, features.base, self.good, self.bad, self.margin)
        shortfall_kernel(demands, change, shortfall)
        return shortfall

    def cost(self, change: NDArray[np.float64]) -> float:
        """The objective: size of the change and price of the keeps it violates."""
        size = float(np.abs(change).sum())
        soft = ~self.hard
        if not soft.any():
            return size
        return size + float(np.maximum(self.shortfall(change)[soft], 0) @ self.weight[soft])

    def widened(self, factor: float) -> RepairProblem:
        """The same with larger margins."""
        return replace(self, margin=self.margin * factor)


def repair_problem(
    features: Features,
    faults: FaultSet,
    keep: tuple[KeepSet, NDArray[np.int64]] | None,
    variant: Variant,
    margin: float,
) -> RepairProblem:
    """Demands of faults and keeps, whose features come in this order; equal ones are one group.

    Masks and actions must be in the order of the policy's outputs already.

    Args:
        keep: the states and what the policy does there.
    """
    good, bad = fault_masks(faults, variant)
    margins = np.full(len(faults), margin)
    weight = np.full(len(faults), np.inf)
    if keep is not None and len(keep[0]):
        states, actions = keep
        base = features.base[len(faults) :]
        own = np.zeros_like(states.applicable)
        own[np.arange(len(states)), actions] = True
        others = states.applicable & ~own
        gap = base[own] - np.where(others, base, -np.inf).max(axis=1)
        good, bad = np.concatenate([good, own]), np.concatenate([bad, others])
        narrow = np.clip(gap, _LEAST_KEEP_MARGIN, margin)
        margins = np.concatenate([margins, narrow])
        weight = np.concatenate([weight, np.full(len(states), states.penalty)])
    first, group = _grouped(features, good, bad, np.isinf(weight))
    rows = _widest(margins, group, len(first))
    return RepairProblem(
        features.take(first), good[first], bad[first], rows, weight[first], group, len(faults)
    )


def fault_masks(faults: FaultSet, variant: Variant) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Good and bad actions per fault, shapes (n, A)."""
    own = np.zeros_like(faults.safe)
    own[np.arange(len(faults)), faults.actions] = True
    if variant == "weak":
        return faults.applicable & ~own, own
    return faults.safe, faults.applicable & ~faults.safe


def _grouped(
    features: Features, good: NDArray[np.bool_], bad: NDArray[np.bool_], hard: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of every group, and every row's group."""
    masks = np.packbits(np.column_stack([good, bad, hard]), axis=1)
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    group = np.empty(len(good), dtype=np.int64)
    for row, key in enumerate(features.keys()):
        full = key + masks[row].tobytes()
        if full not in numbers:
            numbers[full] = len(first)
            first.append(row)
        group[row] = numbers[full]
    return np.array(first, dtype=np.int64), group


def _widest(
    margins: NDArray[np.float64], group: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    widest = np.zeros(count)
    np.maximum.at(widest, group, margins)
    return widest
