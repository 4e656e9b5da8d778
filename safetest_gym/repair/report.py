"""What a repair did, and how two policies' decisions differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.policy import Policy

__all__ = ["RepairReport", "SideEffects", "side_effects"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RepairReport:
    """What a repair did; every fact about decisions comes from the repaired policy itself.

    Attributes:
        algorithm: how the change was found: "exact", "first-order", "trie", "gradient", or
            "nothing to do".
        solvers: that were used.
        notes: what else a user should know: why a solver was not used, what was given up.
        objective: size of the change (sum of absolute changes) and price of violated keeps.
        lower_bound: no change of the same parameters costs less; 0 if nothing is known.
        changed: leaf values or weights that differ.
        trees_added: new trees.
        fixed: per fault, is the bad action gone (weak) or the action safe (strong)?
        safe_now: per fault, is the new action known to be safe?
        unfixable: faults that no policy with these inputs can fix, because all applicable
            actions are bad, or equal inputs have contradicting demands.
        kept: per state to keep, is its decision still the same?
        attempts: how often the margin had to be widened because sums are rounded, plus one.
        cut_short: the time limit ended something, so that the result depends on the machine.
        side_effects: on other states, where someone looked.
    """

    method: str
    variant: str
    algorithm: str
    solvers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    objective: float
    lower_bound: float
    changed: int
    trees_added: int = 0
    fixed: NDArray[np.bool_]
    safe_now: NDArray[np.bool_]
    unfixable: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    kept: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    attempts: int = 1
    seconds: float = 0.0
    cut_short: bool = False
    side_effects: SideEffects | None = None

    @property
    def gap(self) -> float:
        """How far the objective can be from the least one, as a fraction of it."""
        return 0.0 if self.objective <= 0 else 1 - self.lower_bound / self.objective

    @property
    def all_fixed(self) -> bool:
        """Is every fault fixed?"""
        return bool(self.fixed.all())

    def describe(self) -> str:
        """The report for people."""
        solver = f" with {' and '.join(self.solvers)}" if self.solvers else ""
        lines = [
            f"{self.method} ({self.variant}, {self.algorithm}{solver}): "
            f"{int(self.fixed.sum())} of {len(self.fixed)} faults fixed, "
            f"{int(self.safe_now.sum())} with an action known to be safe",
            f"change {self.objective:.6g} in {self.changed} values (proved: no less than "
            f"{self.lower_bound:.6g}); {self.trees_added} new trees; {self.seconds:.2f} s",
        ]
        if len(self.kept):
            lines.append(f"{int(self.kept.sum())} of {len(self.kept)} decisions to keep are kept")
        if len(self.unfixable):
            lines.append(f"{len(self.unfixable)} faults cannot be fixed by any change")
        if self.cut_short:
            lines.append("the time limit cut it short: another run may end differently")
        if self.side_effects is not None:
            lines.append(self.side_effects.describe())
        return "\n".join([*lines, *self.notes])

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "method": self.method,
            "variant": self.variant,
            "algorithm": self.algorithm,
            "solvers": list(self.solvers),
            "notes": list(self.notes),
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "changed": self.changed,
            "trees_added": self.trees_added,
            "faults": len(self.fixed),
            "fixed": int(self.fixed.sum()),
            "safe_now": int(self.safe_now.sum()),
            "not_fixed": np.flatnonzero(~self.fixed).tolist(),
            "unfixable": self.unfixable.tolist(),
            "kept": int(self.kept.sum()),
            "keep": len(self.kept),
            "attempts": self.attempts,
            "seconds": self.seconds,
            "cut_short": self.cut_short,
            "side_effects": None if self.side_effects is None else self.side_effects.as_dict(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class SideEffects:
    """Decisions that differ between two policies.

    Attributes:
        states: how many were compared.
        changed: in how many the action differs.
        better, worse: of these, from not safe to safe and the reverse, where that is known.
        first: index of the first difference, -1 if there is none.
        moves: how often each (action before, action after) occurred, most frequent first.
    """

    states: int
    changed: int
    better: int
    worse: int
    first: int
    moves: tuple[tuple[tuple[int, int], int], ...]

    def describe(self) -> str:
        """One line for people."""
        return (
            f"other decisions changed in {self.changed} of {self.states} states: "
            f"{self.better} for the better, {self.worse} for the worse"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; moves as (before, after, count)."""
        return {
            "states": self.states,
            "changed": self.changed,
            "better": self.better,
            "worse": self.worse,
            "first": self.first,
            "moves": [[before, after, count] for (before, after), count in self.moves],
        }


def side_effects(
    before: Policy,
    after: Policy,
    states: NDArray[Any],
    applicable: NDArray[np.bool_],
    safe: NDArray[np.bool_] | None = None,
) -> SideEffects:
    """Compare two policies on states (n, V) under masks (n, A).

    Args:
        safe: masks (n, A) of safe actions, if known; otherwise nothing counts as better
            or worse.
    """
    old, new = before.actions(states, applicable), after.actions(states, applicable)
    rows = np.flatnonzero(old != new)
    better = worse = 0
    if safe is not None:
        was, is_ = safe[rows, old[rows]], safe[rows, new[rows]]
        better, worse = int((~was & is_).sum()), int((was & ~is_).sum())
    moves = Counter(zip(old[rows].tolist(), new[rows].tolist(), strict=True))
    return SideEffects(
        states=len(states),
        changed=len(rows),
        better=better,
        worse=worse,
        first=int(rows[0]) if len(rows) else -1,
        moves=tuple(moves.most_common()),
    )
