"""The part of a task around some states, explicit: choices and outcomes as flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.native import Expansion
from safetest_gym.errors import ConfigError
from safetest_gym.fuzzing import PolicyGraph
from safetest_gym.fuzzing.interner import Interner
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Part", "TaskGraph"]

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class TaskGraph:
    """States numbered breadth-first; the roots come first, in their order.

    Attributes:
        words: packed states.
        kind: bit 0 failing, bit 1 goal.
        open: states that were not expanded because of the limit.
        owner, action: per choice its state (ascending) and its action.
        first: rows of choice c are ``first[c] : first[c + 1]``.
        target, probability: per row.

    Args:
        roots: states (n, V).
        limit: after this many states nothing more is expanded.
        depth: beyond this many steps from the roots only the policy's action is followed.
    """

    def __init__(
        self,
        task: Task,
        roots: NDArray[Any],
        *,
        policy: Policy | None = None,
        depth: int | None = None,
        limit: int = 1_000_000,
    ) -> None:
        if limit < 1:
            raise ConfigError(f"limit must be positive, got {limit}")
        if depth is not None and policy is None:
            raise ConfigError("a depth needs a policy to follow beyond it")
        self.task = task
        self.policy = None if policy is None else PolicyGraph(task, policy)
        self._interner = Interner(task.engine.num_words)
        self.roots = self._interner.add(task.engine.pack(roots))
        self._parts: list[tuple[Ints, Ints, Ints, Ints, Reals]] = []
        self._explore(limit, depth)
        self._finish()

    @property
    def size(self) -> int:
        """States known."""
        return len(self.words)

    @property
    def complete(self) -> bool:
        """Was everything expanded?"""
        return not self.open.any()

    def _explore(self, limit: int, depth: int | None) -> None:
        engine = self.task.engine
        level, begin = 0, 0
        kinds = []
        while begin < self._interner.known:
            end = self._interner.known
            words = self._interner.states[begin:end].copy()
            kinds.append(engine.classify(words))
            if end > limit and begin > 0:
                break
            acting = np.flatnonzero(kinds[-1] == 0)
            expansion = engine.expand(words[acting])
            owner, action, size, rows, chance = _choices(self.task, expansion)
            owner = begin + acting[owner]
            if depth is not None and level >= depth:
                assert self.policy is not None
                kept = self._own_actions(words)[owner - begin] == action
                rows = rows[np.repeat(kept, size)]
                chance = chance[np.repeat(kept, size)]
                owner, action, size = owner[kept], action[kept], size[kept]
            target = self._interner.add(expansion.states[rows])
            self._parts.append((owner, action, size, target, chance))
            begin, level = end, level + 1
        self._expanded = begin
        self.kind = np.concatenate(kinds) if kinds else np.empty(0, np.uint8)

    def _own_actions(self, words: Ints) -> Ints:
        assert self.policy is not None
        numbers = self.policy.intern_packed(words)
        self.policy.expand(numbers)
        return self.policy.action[numbers]

    def _finish(self) -> None:
        empty = np.empty(0, np.int64)
        parts = self._parts or [(empty, empty, empty, empty, np.empty(0))]
        owner, action, size, target, chance = (
            np.concatenate([part[i] for part in parts]) for i in range(5)
        )
        self.words = self._interner.states[: self._interner.known]
        self.owner, self.action, self.target, self.probability = owner, action, target, chance
        self.first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        if len(self.kind) < len(self.words):
            rest = self.task.engine.classify(self.words[len(self.kind) :])
            self.kind = np.concatenate([self.kind, rest])
        self.open = (np.arange(len(self.words)) >= self._expanded) & (self.kind == 0)

    def goals(self) -> Reals:
        """Per state, 1 if runs end there in a goal, else 0."""
        reached: Reals = (self.kind == 2).astype(np.float64)
        return reached

    def failures(self) -> Reals:
        """Per state, 1 if it is failing, else 0."""
        return (self.kind & 1).astype(np.float64)

    def all_choices(self) -> Part:
        """Everything that can be done."""
        return Part(self, np.arange(len(self.owner)))

    def policy_choices(self) -> Part:
        """What the policy does."""
        if self.policy is None:
            raise ConfigError("the graph was made without a policy")
        own = self._own_actions(self.words[: self._expanded])
        return Part(self, np.flatnonzero(own[self.owner] == self.action))

    def vectors(self, numbers: Ints) -> NDArray[Any]:
        """State vectors by number."""
        return self.task.engine.unpack(self.words[numbers])


class Part:
    """Some of the choices of a graph, in a form that Bellman backups use.

    Attributes:
        acting: states that have one of the choices, ascending.
        owner: per choice its state.
    """

    def __init__(self, graph: TaskGraph, choices: Ints) -> None:
        self.graph = graph
        self.choices = choices
        self.owner = graph.owner[choices]
        sizes = (graph.first[1:] - graph.first[:-1])[choices]
        begin = np.cumsum(sizes) - sizes
        rows = np.repeat(graph.first[choices] - begin, sizes) + np.arange(sizes.sum())
        self.target = graph.target[rows]
        self.probability = graph.probability[rows]
        self._rows = begin
        new = np.ones(len(self.owner), np.bool_)
        new[1:] = self.owner[1:] != self.owner[:-1]
        self._choices = np.flatnonzero(new)
        self.acting = self.owner[new]
        self.row_choice = np.repeat(np.arange(len(choices)), sizes)

    def outcomes(self, reduce: np.ufunc, values: Reals) -> Reals:
        """Per choice, ``reduce`` over the values of its outcomes."""
        if not len(self.choices):
            return np.empty(0)
        result: Reals = reduce.reduceat(values[self.target], self._rows)
        return result

    def mean(self, values: Reals) -> Reals:
        """Per choice, the expected value of its outcome."""
        if not len(self.choices):
            return np.empty(0)
        return np.add.reduceat(values[self.target] * self.probability, self._rows)

    def best(self, reduce: np.ufunc, per_choice: NDArray[Any]) -> NDArray[Any]:
        """Per acting state, ``reduce`` over its choices."""
        if not len(self.choices):
            return per_choice[:0]
        result: NDArray[Any] = reduce.reduceat(per_choice, self._choices)
        return result


def _choices(task: Task, expansion: Expansion) -> tuple[Ints, Ints, Ints, Ints, Reals]:
    """Owner, action and size of each choice; rows in their order and their probabilities."""
    sizes = np.diff(expansion.first)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    number = expansion.number
    if task.granularity == 1:
        counts = np.diff(expansion.ends, axis=1, prepend=0)
        labels = np.tile(np.arange(counts.shape[1]), len(counts))
        action = np.repeat(labels, counts.ravel())
    else:
        action = number if task.granularity == 0 else np.zeros(len(number), np.int64)
    rows = np.arange(len(owner))
    new = np.ones(len(owner), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (action[1:] != action[:-1])
    edge = np.ones(len(owner), np.bool_)
    edge[1:] = new[1:] | (number[1:] != number[:-1])
    begin = np.flatnonzero(new)
    size = np.diff(np.append(begin, len(owner)))
    edges = np.add.reduceat(edge, begin) if len(begin) else np.empty(0, np.int64)
    chance = expansion.probability / np.repeat(edges, size) if len(begin) else np.empty(0)
    return owner[begin], action[begin].astype(np.int64), size, rows, chance
