"""Put a certificate together from the proved facts that a decider holds.

Facts support each other: a safe state has an action all of whose outcomes are known to be
safe; every action of an unsafe one has an outcome that was known to be unsafe before. So
what a decider remembers of its search is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.certificate import Certificate
from safetest_gym.deciders.graph import unsafety_ranks
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import EngineError

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.engine.native import Expansion

__all__ = ["prove"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Outcomes of several states as rows, sorted by owner and action.

    Attributes:
        owner: index among the states asked for.
        action: the task's action.
        target: number of the state in the decider, or -1 if it does not know it.
        first: rows at which an (owner, action) begins.
    """

    owner: Numbers
    action: Numbers
    target: Numbers
    first: Numbers


def prove(decider: Decider, root: int) -> Certificate:
    """A certificate for the settled state numbered ``root``."""
    verdict = Verdict(int(decider.verdict[root]))
    collect = _closed_set if verdict is Verdict.SAFE else _refutation
    numbers, rank, choices = collect(decider, root)
    space = decider.space
    left = space.left(numbers)
    return Certificate(
        digest=decider.task.digest,
        verdict=verdict,
        radius=-1 if left is None else int(decider.radius),
        states=decider.task.engine.unpack(space.words(numbers)),
        left=np.zeros(len(numbers), np.int64) if left is None else left,
        rank=rank,
        choices=choices,
    )


def _outcomes(decider: Decider, numbers: Numbers) -> _Outcomes:
    """What can be done in states that are no goals and do not fail."""
    rows, owner, action = _rows(decider, numbers)
    changed = (np.diff(owner) != 0) | (np.diff(action) != 0)
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(owner)), np.bool_), changed]))
    return _Outcomes(owner, action, decider.space.find(rows), first)


def _rows(decider: Decider, numbers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Outcomes as rows of the space, with index of the state and action.

    With a finite radius, outcomes of actions that need more deviations than are left are
    not there.
    """
    space = decider.space
    packed, left = space.words(numbers), space.left(numbers)
    expansion = decider.task.engine.expand(packed)
    owner = np.repeat(np.arange(len(packed)), np.diff(expansion.first))
    action = _actions(decider, expansion, owner)
    if left is None:
        return expansion.states, owner, action
    own = np.full(len(packed), -1, np.int64)
    live = np.unique(owner)
    vectors = decider.task.engine.unpack(packed[live])
    own[live] = space.bound.actions(vectors, decider.task.applicable_many(vectors))
    after = left[owner] - (action != own[owner])
    allowed = after >= 0
    rows = np.column_stack([expansion.states, after])[allowed]
    return np.ascontiguousarray(rows), owner[allowed], action[allowed]


def _actions(decider: Decider, expansion: Expansion, owner: Numbers) -> Numbers:
    """The action of every row."""
    if decider.task.granularity == 2:
        return np.zeros(len(owner), np.int64)
    if decider.task.granularity == 0:
        return expansion.number
    place = np.arange(len(owner)) - expansion.first[owner]
    labels: Numbers = (expansion.ends[owner] <= place[:, None]).sum(axis=1)
    return labels


def _live(decider: Decider, numbers: Numbers) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = decider.task.engine.classify(decider.space.words(numbers)) == 0
    return mask


def _closed_set(decider: Decider, root: int) -> tuple[Numbers, Numbers, Numbers]:
    """States, ranks and choices: per state the first action that stays among safe states."""
    row_of = {root: 0}
    choices: list[NDArray[np.int64]] = []
    frontier = np.array([root])
    while len(frontier):
        live = frontier[_live(decider, frontier)]
        found = _outcomes(decider, live)
        safe = (found.target >= 0) & (decider.verdict[found.target] == Verdict.SAFE)
        good = found.first[np.logical_and.reduceat(safe, found.first)] if len(safe) else found.first
        owners, at = np.unique(found.owner[good], return_index=True)
        if len(owners) < len(np.unique(found.owner)):
            raise EngineError("a safe state without a safe action: please report this model")
        taken = np.full(len(live), -1, np.int64)
        taken[owners] = found.action[good[at]]
        chosen = found.action == taken[found.owner] if len(found.owner) else np.zeros(0, np.bool_)
        states = [row_of[number] for number in live[owners].tolist()]
        choices.append(np.column_stack([states, taken[owners], np.full(len(states), -1)]))
        frontier = _add(row_of, found.target[chosen])
    numbers = np.fromiter(row_of, np.int64, len(row_of))
    return numbers, np.zeros(len(numbers), np.int64), _stack(choices)


def _refutation(decider: Decider, root: int) -> tuple[Numbers, Numbers, Numbers]:
    """States, ranks and choices: as few steps to failing as the known facts allow."""
    row_of, parts = _unsafe_region(decider, root)
    numbers = np.fromiter(row_of, np.int64, len(row_of))
    rank = _ranks(decider, numbers, parts)
    if not rank[0]:
        raise EngineError("an unsafe state without a refutation: please report this model")
    per_choice: dict[int, list[tuple[int, int]]] = {}
    for owner, action, target in parts:
        first = np.flatnonzero(
            np.concatenate([[True], (np.diff(owner) != 0) | (np.diff(action) != 0)])
        )
        ends = np.append(first[1:], len(owner))
        for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
            ranks = np.where(rank[target[begin:end]] > 0, rank[target[begin:end]], len(rank) + 2)
            best = int(target[begin + int(np.argmin(ranks))])
            per_choice.setdefault(int(owner[begin]), []).append((int(action[begin]), best))
    return _needed(numbers, rank, per_choice)


def _unsafe_region(
    decider: Decider, root: int
) -> tuple[dict[int, int], list[tuple[Numbers, Numbers, Numbers]]]:
    """Unsafe states below ``root`` by row, and their unsafe outcomes as rows."""
    row_of = {root: 0}
    parts: list[tuple[Numbers, Numbers, Numbers]] = []
    frontier = np.array([root])
    while len(frontier):
        live = frontier[_live(decider, frontier)]
        found = _outcomes(decider, live)
        unsafe = (found.target >= 0) & (decider.verdict[found.target] == Verdict.UNSAFE)
        frontier = _add(row_of, found.target[unsafe])
        if unsafe.any():
            rows = np.array([row_of[number] for number in live.tolist()])
            targets = np.array([row_of[number] for number in found.target[unsafe].tolist()])
            parts.append((rows[found.owner[unsafe]], found.action[unsafe], targets))
    return row_of, parts


def _ranks(
    decider: Decider, numbers: Numbers, parts: list[tuple[Numbers, Numbers, Numbers]]
) -> NDArray[np.int32]:
    """Steps to failing within the region; every action has an unsafe outcome in it."""
    kinds = decider.task.engine.classify(decider.space.words(numbers)) & np.uint8(1)
    empty = np.zeros(0, np.int64)
    owner, action, target = (
        np.concatenate([empty, *(part[i] for part in parts)]) for i in range(3)
    )
    order = np.lexsort((action, owner))
    owner, action, target = owner[order], action[order], target[order]
    new = np.ones(len(owner), np.bool_)
    new[1:] = (np.diff(owner) != 0) | (np.diff(action) != 0)
    first_outcome = np.append(np.flatnonzero(new), len(owner))
    first_choice = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount(owner[new], minlength=len(numbers)), out=first_choice[1:])
    return unsafety_ranks(kinds, first_choice, first_outcome, target.astype(np.int32))


def _needed(
    numbers: Numbers, rank: NDArray[np.int32], per_choice: dict[int, list[tuple[int, int]]]
) -> tuple[Numbers, Numbers, Numbers]:
    """Only what hangs on the root, renumbered."""
    row_of = {0: 0}
    choices: list[tuple[int, int, int]] = []
    queue = [0]
    for row in queue:
        for action, target in per_choice.get(row, []):
            if target not in row_of:
                row_of[target] = len(row_of)
                queue.append(target)
            choices.append((row_of[row], action, row_of[target]))
    kept = np.array(queue)
    return numbers[kept], rank[kept].astype(np.int64), np.array(choices, np.int64).reshape(-1, 3)


def _add(row_of: dict[int, int], numbers: Numbers) -> Numbers:
    """Give new states their rows, and return them."""
    new = [number for number in dict.fromkeys(numbers.tolist()) if number not in row_of]
    for number in new:
        row_of[number] = len(row_of)
    return np.array(new, np.int64)


def _stack(parts: list[NDArray[Any]]) -> Numbers:
    return np.concatenate([np.zeros((0, 3), np.int64), *parts]).astype(np.int64)
