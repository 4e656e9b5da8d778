"""What a policy can do in boxes of states: the task's commands on intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safetest_gym.jani.tree import (
    FALSE,
    Expression,
    Literal,
    Operation,
    Reference,
    subexpressions,
)
from safetest_gym.policies.policy import Policy
from safetest_gym.verify.commands import commands_of, domain_of
from safetest_gym.verify.intervals import Bounds, Floats
from safetest_gym.verify.narrowing import Bools, Boxes, Narrower
from safetest_gym.verify.scores import Choices, make_scores

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["BoxSystem", "Images", "split_at"]

_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Images:
    """Boxes that can follow, each from a part of a given box.

    Attributes:
        owner: number of the given box, (m,).
        source: the part of it.
        target: all that follows is in there.
    """

    owner: NDArray[np.int64]
    source: Boxes
    target: Boxes


class BoxSystem:
    """The task under a policy, on boxes.

    Out of a failing, a goal or a dead state nothing follows. An assignment outside its
    variable's bounds is an error of the model, not a run; nothing follows from it either.

    Attributes:
        domain: all states, as one box.
        splits: how often a part is cut in two to tell what the policy does there.
    """

    def __init__(self, task: Task, policy: Policy) -> None:
        self.task = task
        self.narrower = Narrower(task.variables)
        self.domain = domain_of(task)
        self.splits = 6
        self._scores = make_scores(policy)
        self._commands, inline = commands_of(task)
        self.failing = inline.plain(task.property.failure or FALSE)
        self._goal = inline.plain(task.property.goal or FALSE)

    def constants(self) -> list[tuple[int, float]]:
        """Where conditions compare one real variable with a number: column and number."""
        conditions = [self.failing, self._goal, *(g for c in self._commands for g in c.guard)]
        found = dict.fromkeys(
            (self.narrower.columns[side.variable], float(other.value))
            for node in subexpressions(conditions)
            if isinstance(node, Operation) and node.operator in ("=", "≠", "<", "≤")
            for side, other in (node.operands, node.operands[::-1])
            if isinstance(side, Reference) and side.kind == "real" and isinstance(other, Literal)
        )
        return list(found)

    def can_fail(self, boxes: Boxes) -> tuple[Bools, Boxes]:
        """Can a state of each box fail? And the part of it in which that can be."""
        part = _copied(boxes)
        return self.narrower.narrow(self.failing, part), part

    def images(self, boxes: Boxes) -> Images:
        """All that the policy can do in one step, (n, V) boxes."""
        found = [
            self._images(first, _chosen(boxes, slice(first, first + _BATCH)))
            for first in range(0, len(boxes[0]), _BATCH)
        ]
        flat = [images for part in found for images in part]
        return Images(
            np.concatenate([images.owner for images in flat] or [np.zeros(0, np.int64)]),
            self._joined([images.source for images in flat]),
            self._joined([images.target for images in flat]),
        )

    def _joined(self, parts: list[Boxes]) -> Boxes:
        nothing = np.zeros((0, self.task.num_variables))
        return (
            np.concatenate([part[0] for part in parts] or [nothing]),
            np.concatenate([part[1] for part in parts] or [nothing]),
        )

    def _images(self, first: int, boxes: Boxes) -> list[Images]:
        running = _copied(boxes)
        alive = self.narrower.narrow(self.failing, running, False)
        alive &= self.narrower.narrow(self._goal, running, False)
        running, owner = _chosen(running, alive), first + np.flatnonzero(alive)
        parts = self._enabled(running, owner)
        found = []
        for action in range(self.task.num_actions):
            mine = [part for part in parts if self._commands[part[1]].action == action]
            if not mine:
                continue
            tags = np.concatenate([np.full(len(rows), c) for _, c, rows in mine])
            owners = np.concatenate([rows for _, _, rows in mine])
            sources, kept = self._taken(action, self._joined([boxes for boxes, _, _ in mine]))
            for command in np.unique(tags[kept]).tolist():
                which = tags[kept] == command
                for probability, update in self._commands[command].outcomes:
                    part = _chosen(sources, which)
                    found.append(self._outcome(probability, update, part, owners[kept][which]))
        return found

    def _enabled(
        self, boxes: Boxes, owner: NDArray[np.int64]
    ) -> list[tuple[Boxes, int, NDArray[np.int64]]]:
        """Per command that can be enabled: where, its number, and the owners."""
        bounds = Bounds(self.narrower.columns, *boxes)
        found = []
        for number, command in enumerate(self._commands):
            rows = np.ones(len(owner), np.bool_)
            for condition in command.guard:
                rows &= bounds.of(condition)[1] == 1
                if not rows.any():
                    break
            part = _chosen(boxes, rows)
            here = np.ones(len(part[0]), np.bool_)
            for condition in command.guard:
                here &= self.narrower.narrow(condition, part) if len(here) else here
            if here.any():
                found.append((_chosen(part, here), number, owner[rows][here]))
        return found

    def _taken(self, action: int, boxes: Boxes) -> tuple[Boxes, NDArray[np.int64]]:
        """The parts of boxes, all of whose states have the action, where it may be chosen.

        With each part the row of its box.
        """
        kept, rows = [], []
        row = np.arange(len(boxes[0]))
        for depth in range(self.splits + 1):
            if not len(row):
                break
            must, may = self._applicable(boxes)
            choices = self._scores.ask(action, boxes)
            possible = _possible(action, choices, must)
            surely = _surely(action, choices, may)
            cut = np.zeros(len(row), np.bool_) if depth == self.splits else possible & ~surely
            column, at, cut = self._cut(choices, boxes, cut)
            done = possible & ~cut
            kept.append(_chosen(boxes, done))
            rows.append(row[done])
            boxes, row = split_at(boxes, row, (column, at, cut), self.narrower.whole)
        return self._joined(kept), np.concatenate([np.zeros(0, np.int64), *rows])

    def _cut(
        self, choices: Choices, boxes: Boxes, wanted: Bools
    ) -> tuple[NDArray[np.int64], Floats, Bools]:
        """Where wanted boxes are cut, and those that can be."""
        column = np.maximum(choices.column, 0)
        rows = np.arange(len(column))
        at = np.where(self.narrower.whole[column], np.ceil(choices.cut), choices.cut)
        inside = (boxes[0][rows, column] < at) & (at <= boxes[1][rows, column])
        return column, at, wanted & (choices.column >= 0) & inside

    def _applicable(self, boxes: Boxes) -> tuple[Bools, Bools]:
        """Per box and action: in all its states, in any of them?"""
        must = np.zeros((len(boxes[0]), self.task.num_actions), np.bool_)
        may = must.copy()
        bounds = Bounds(self.narrower.columns, *boxes)
        for command in self._commands:
            always, sometimes = np.ones(len(must), np.bool_), np.ones(len(must), np.bool_)
            for condition in command.guard:
                low, high = bounds.of(condition)
                always &= low == 1
                sometimes &= high == 1
                if not sometimes.any():
                    break
            must[:, command.action] |= always & sometimes
            may[:, command.action] |= sometimes
        return must, may

    def _outcome(
        self,
        probability: Expression | None,
        update: dict[int, Expression],
        boxes: Boxes,
        owner: NDArray[np.int64],
    ) -> Images:
        bounds = Bounds(self.narrower.columns, *boxes)
        low, high = boxes[0].copy(), boxes[1].copy()
        alive = np.ones(len(owner), np.bool_)
        if probability is not None:
            alive &= bounds.of(probability)[1] > 0
        for column, value in update.items():
            ends = bounds.of(value)
            low[:, column] = np.maximum(ends[0], self.domain[0][column])
            high[:, column] = np.minimum(ends[1], self.domain[1][column])
        alive &= (low <= high).all(axis=1)
        return Images(owner[alive], _chosen(boxes, alive), (low[alive], high[alive]))


def split_at(
    boxes: Boxes,
    owner: NDArray[np.int64],
    where: tuple[NDArray[np.int64], Floats, Bools],
    whole: Bools,
) -> tuple[Boxes, NDArray[np.int64]]:
    """Both halves of the boxes that are cut; the others are dropped."""
    column, at = where[0][where[2]], where[1][where[2]]
    below = _chosen(boxes, where[2])
    above = _copied(below)
    rows = np.arange(len(column))
    below[1][rows, column] = np.where(whole[column], at - 1, np.nextafter(at, -np.inf))
    above[0][rows, column] = at
    both = np.concatenate([below[0], above[0]]), np.concatenate([below[1], above[1]])
    return both, np.tile(owner[where[2]], 2)


def _possible(action: int, choices: Choices, must: Bools) -> Bools:
    """Can the action have the best score, given what is surely applicable?"""
    lead = choices.upper[:, [action]] - choices.lower
    beaten = (np.minimum(lead, choices.leads) < 0) & must
    earlier = np.arange(must.shape[1]) < action
    beaten |= (choices.upper[:, [action]] <= choices.lower) & must & earlier
    beaten[:, action] = False
    return np.asarray(~beaten.any(axis=1))


def _surely(action: int, choices: Choices, may: Bools) -> Bools:
    """Has the action the best score for sure, given what may be applicable?"""
    own = choices.lower[:, [action]]
    later = np.arange(may.shape[1]) > action
    wins = (own > choices.upper) | ((own == choices.upper) & later) | ~may
    wins[:, action] = True
    return np.asarray(wins.all(axis=1))


def _copied(boxes: Boxes) -> Boxes:
    return boxes[0].copy(), boxes[1].copy()


def _chosen(boxes: Boxes, which: NDArray[np.int64] | Bools | slice) -> Boxes:
    return boxes[0][which], boxes[1][which]
