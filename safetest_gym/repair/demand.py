"""A repair's demands in the order of the policy's outputs, without the impossible ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.policy import Policy
from safetest_gym.repair.problem import Variant, fault_masks
from safetest_gym.repair.ranking import Demand, contradicting, masks_to_demands
from safetest_gym.repair.requests import FaultSet, KeepSet

__all__ = ["Demands", "demands"]


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """Faults that can be fixed and decisions that can be kept, by output.

    Attributes:
        faults, keep: with masks and actions by the policy's outputs.
        kept: the policy's decision per state to keep, by output.
        rows: the faults' places in what was asked for.
        unfixable: the other faults' places.
    """

    faults: FaultSet
    keep: KeepSet
    kept: NDArray[np.int64]
    rows: NDArray[np.int64]
    unfixable: NDArray[np.int64]
    points: NDArray[np.float32]

    @property
    def states(self) -> NDArray[Any]:
        """All states, faults first."""
        return np.concatenate([self.faults.states, self.keep.states])


def demands(policy: Policy, faults: FaultSet, keep: KeepSet | None, variant: Variant) -> Demands:
    """Check a request against the policy and put it into the order of its outputs.

    States to keep that the policy cannot tell from a fault's state are left out.
    """
    names = policy.interface
    if keep is None:
        keep = KeepSet(states=faults.states[:0], applicable=faults.applicable[:0])
    _check(names, "the faults", faults)
    _check(names, "what to keep", keep)
    order, numbers = np.array(names.order), np.array(names.numbers)
    own = FaultSet(
        states=faults.states,
        actions=order[faults.actions],
        applicable=faults.applicable[:, numbers],
        safe=faults.safe[:, numbers],
    )
    points = _points(names, faults.states)
    impossible = _unfixable(points, own, variant)
    rows = np.flatnonzero(~impossible)
    seen = {point.tobytes() for point in points}
    others = _points(names, keep.states)
    free = np.array([point.tobytes() not in seen for point in others], dtype=np.bool_)
    kept = policy.actions(keep.states, keep.applicable) if len(keep) else np.zeros(0, np.int64)
    mine = replace(keep, states=keep.states[free], applicable=keep.applicable[free][:, numbers])
    return Demands(
        faults=own.take(rows),
        keep=mine,
        kept=order[kept[free]],
        rows=rows,
        unfixable=np.flatnonzero(impossible),
        points=np.concatenate([points[rows], others[free]]),
    )


def _check(names: Interface, what: str, given: FaultSet | KeepSet) -> None:
    if given.applicable.shape[1] != names.num_actions:
        raise ConfigError(
            f"the masks of {what} have {given.applicable.shape[1]} actions, the policy "
            f"{names.num_actions}: {', '.join(names.actions)}"
        )
    if given.states.shape[1] <= max(names.columns, default=-1):
        raise ConfigError(
            f"the states of {what} have {given.states.shape[1]} variables, the policy reads "
            f"number {max(names.columns)} too: were they made with another task?"
        )
    if not np.isfinite(given.states).all():
        raise ConfigError(f"the states of {what} have values that are no finite numbers")


def _points(names: Interface, states: NDArray[Any]) -> NDArray[np.float32]:
    """What the policy reads, with one zero only."""
    return np.ascontiguousarray(states[:, list(names.columns)], dtype=np.float32) + np.float32(0)


def _unfixable(points: NDArray[np.float32], faults: FaultSet, variant: Variant) -> Any:
    """Faults with contradicting demands on equal points."""
    pairs = masks_to_demands(*fault_masks(faults, variant))
    members: dict[bytes, list[int]] = {}
    for row, point in enumerate(points):
        members.setdefault(point.tobytes(), []).append(row)
    impossible = np.zeros(len(faults), dtype=np.bool_)
    for rows in members.values():
        wrong: set[Demand] = contradicting([pairs[row] for row in rows], faults.applicable.shape[1])
        for row in rows:
            impossible[row] = pairs[row] in wrong
    return impossible
