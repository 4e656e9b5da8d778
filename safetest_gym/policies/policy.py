"""What every policy offers, and the one rule by which scores become an action.

The action is the applicable one with the highest score, ties to the lowest number.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ActionError, StateError
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.native import NativePolicy

__all__ = [
    "Policy",
    "ScoredPolicy",
    "ask_policy",
    "best_actions",
    "check_batch",
    "no_action_error",
]


@runtime_checkable
class Policy(Protocol):
    """Chooses one applicable action per state, always the same one."""

    @property
    def interface(self) -> Interface:
        """The variables it reads and the actions it chooses among."""
        ...

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Actions, shape (n,), of states (n, V) in task order under masks (n, A).

        Raises:
            ActionError: a row has no applicable action, or the policy none for it.
        """
        ...

    def bind(self, task: TaskNames) -> Self:
        """The same policy with its names looked up in ``task``."""
        ...

    def native(self) -> NativePolicy | None:
        """Its form for kernels, or None if it can only be called from Python."""
        ...


@runtime_checkable
class ScoredPolicy(Policy, Protocol):
    """A policy that gives every action a score."""

    def scores(self, states: NDArray[np.generic]) -> NDArray[np.float32]:
        """Scores, shape (n, A), by the task's action numbers."""
        ...


def check_batch(
    interface: Interface, states: NDArray[np.generic], applicable: NDArray[np.bool_] | None = None
) -> None:
    """Check that states are (n, V) and masks (n, A)."""
    width = interface.num_columns
    if states.ndim != 2 or states.shape[1] != width:
        raise StateError(f"states must have shape (n, {width}), got {states.shape}")
    wanted = (len(states), interface.num_actions)
    if applicable is not None and applicable.shape != wanted:
        raise ActionError(f"applicable must have shape {wanted}, got {applicable.shape}")


def ask_policy(
    policy: Policy, states: NDArray[Any], applicable: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The policy's actions, checked: anybody may write a policy.

    Raises:
        ActionError: the answer is not one applicable action per state.
    """
    actions = np.asarray(policy.actions(states, applicable))
    kind = type(policy).__name__
    if actions.shape != (len(states),) or actions.dtype.kind not in "iu":
        raise ActionError(
            f"{kind}.actions must give {len(states)} whole numbers for {len(states)} states, it "
            f"gave an array of shape {actions.shape} and type {actions.dtype}"
        )
    inside = np.clip(actions, 0, applicable.shape[1] - 1)
    right = applicable[np.arange(len(actions)), inside] & (inside == actions)
    if not right.all():
        row = int(right.argmin())
        raise ActionError(
            f"{kind} chose action {actions[row]} in the state {states[row].tolist()}, where "
            f"{', '.join(map(str, np.flatnonzero(applicable[row])))} are applicable"
        )
    return actions.astype(np.int64, copy=False)


def best_actions(scores: NDArray[np.floating], applicable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The applicable action with the highest score per row, ties to the lowest number."""
    mask = applicable.astype(np.bool_)
    empty = ~mask.any(axis=1)
    if empty.any():
        raise no_action_error(int(empty.argmax()), "no action is applicable")
    masked = np.where(mask, scores, -np.inf)
    best = masked.argmax(axis=1)
    # An applicable score of minus infinity must not lose to an inapplicable action.
    lost = ~mask[np.arange(len(mask)), best]
    best[lost] = mask[lost].argmax(axis=1)
    return np.asarray(best, dtype=np.int64)


def no_action_error(row: int, reason: str) -> ActionError:
    """The error for a state in which the policy has no action."""
    return ActionError(
        f"row {row}: {reason} (ask a policy only where a run goes on: not in goal states, "
        "failing states and dead ends)"
    )
