"""Exhaust the states that a policy can reach from all start states."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Budget, Verdict
from safetest_gym.engine.kernels import following as k
from safetest_gym.engine.kernels import policy_reach as p
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.policies.following import Follower
from safetest_gym.policies.policy import Policy
from safetest_gym.verify.inductive import InductiveStates
from safetest_gym.verify.result import Progress, Report, Verification, make_run

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["verify_explicit"]

_SLICE = 20_000
_MOST = 2**31 - 2
_FIRST = 1 << 14
_JOINED = 1 << 12


class _OverBudgetError(Exception):
    """Why the search cannot go on."""


def verify_explicit(
    policy: Policy,
    task: Task,
    starts: Iterable[NDArray[Any]],
    budget: Budget,
    report: Report | None = None,
    *,
    more: int = 0,
    share: int | None = None,
) -> Verification:
    """Search from slices of start vectors, each (n, V); ``policy`` is bound to ``task``.

    Args:
        more: unsafe runs that are looked for after the first.
        share: from each slice so many at most, so that they are of many start states.
    """
    most = more + 1 if share is None else share
    search = _Search(task, policy, budget, report)
    paths: list[NDArray[Any]] = []
    try:
        for part in starts:
            search.enter(task.engine.pack(part))
            search.failing(paths, min(more + 1, len(paths) + most))
            if len(paths) > more:
                break
    except _OverBudgetError as end:
        if not paths:
            return search.answer(Verdict.UNKNOWN, reason=str(end))
    if paths:
        run = make_run(task, policy, paths[0])
        return search.answer(Verdict.UNSAFE, run=run, more=tuple(paths[1:]))
    known, packed = search.known, search.states
    statistics = search.answer(Verdict.SAFE).statistics
    search.forget()
    proof = InductiveStates.of(task, packed[:known])
    return Verification(verdict=Verdict.SAFE, method="explicit", proof=proof, statistics=statistics)


class _Search:
    """Breadth first within each slice of starts; everything known so far is closed before.

    Attributes:
        states: packed, (room, W).
    """

    def __init__(self, task: Task, policy: Policy, budget: Budget, report: Report | None) -> None:
        self._task, self._policy = task, policy
        self._follower = Follower(task, policy)
        self._ask = policy.native() is None
        self._budget, self._report = budget, report
        self._begun = time.monotonic()
        width = task.engine.num_words
        self._limit = min(budget.states or _MOST, _MOST)
        if budget.megabytes is not None:
            self._limit = min(self._limit, _most_within(int(budget.megabytes * 1e6), width))
        room = min(_FIRST, self._limit)
        self.states = np.empty((room, width), np.int64)
        self._parents = np.empty(room, np.int32)
        self._table = np.zeros(_slots(room), np.int32)
        self._chosen = np.zeros(1, np.int64)
        self._counters = np.zeros(5, np.int64)
        self._joined = np.empty((0, 2), np.int64)
        self._next: dict[int, int] = {}
        self._scratch = np.empty((1, width), np.int64), np.empty(1, np.int64)
        self._starts = self._skipped = 0

    @property
    def known(self) -> int:
        """States known."""
        return int(self._counters[0])

    def enter(self, packed: NDArray[np.int64]) -> None:
        """Make packed states known as starts."""
        for first in range(0, len(packed), _SLICE):
            rows = packed[first : first + _SLICE]
            self._make_room(len(rows))
            before = self.known
            numbers = np.empty(len(rows), np.int64)
            self._counters[0] = intern_rows_kernel(
                self.states, self._table, before, rows, len(rows), numbers
            )
            self._parents[before : self.known] = -1
            self._starts += len(rows)

    def failing(self, paths: list[NDArray[Any]], most: int) -> None:
        """Lengthen ``paths`` by some to states that fail, from what was entered last.

        Every state that can fail is on one of them, unless there are ``most`` before: then
        what is still open is skipped, so that they are of many start states.
        """
        first, found = int(self._counters[1]), len(paths)
        self._joined = np.empty((min(most - len(paths) - 1, _JOINED), 2), np.int64)
        self._skipped += self._collect(paths, most)
        transitions = int(self._counters[2])
        while found < len(paths) < most:  # look again at what came before the states it leads to
            found = len(paths)
            self._counters[1] = first
            self._collect(paths, most)
        self._counters[2] = transitions

    def _collect(self, paths: list[NDArray[Any]], most: int) -> int:
        """Add to ``paths`` what one look at the states from here on finds; states left out."""
        counters = self._counters
        while (failed := self._expand()) or counters[4]:
            for state, outcome in self._joined[: counters[4]].tolist():
                if len(paths) < most and state not in self._next:
                    paths.append(self._path(state, outcome))
            counters[4] = 0
            if len(paths) < most and failed:
                at = int(counters[1])
                if at not in self._next:
                    paths.append(self._path(at, at))
                counters[1] += 1
            if len(paths) == most:
                left = int(counters[0] - counters[1])
                counters[1] = counters[0]
                return left
        return 0

    def _expand(self) -> bool:
        """Expand until nothing is left (False) or the next state fails (True).

        Pauses where other states have joined paths to failing ones.
        """
        counters, follower = self._counters, self._follower
        while counters[1] < counters[0] and not counters[4]:
            self._tell()
            stop = int(counters[1]) + _SLICE
            if self._ask:
                stop = min(stop, self.known)
                self._ask_policy(int(counters[1]), stop)
            status = p.reach_kernel(
                follower.block,
                follower.policy,
                self.states,
                self._table,
                self._parents,
                self._chosen,
                counters,
                follower.span,
                follower.doubles,
                *self._scratch,
                self._joined,
                stop,
            )
            follower.home()
            if status == p.FAILED:
                return True
            if status == k.NO_ROWS:
                follower.grow_rows()
            elif status == p.NO_STATES:
                self._make_room(int(follower.span[1]))
            elif status != 0:
                follower.refuse(status, self.states[counters[1]])
        return False

    def _ask_policy(self, first: int, last: int) -> None:
        kinds, masks, vectors = self._follower.look(self.states[first:last])
        running = kinds == k.RUNNING
        self._chosen = np.full(last - first, -1, np.int64)
        self._counters[3] = first
        if running.any():
            self._chosen[running] = self._follower.ask(vectors[running], masks[running])

    def _tell(self) -> None:
        """Report, and end when the time is up."""
        if self._report is not None:
            known, expanded = int(self._counters[0]), int(self._counters[1])
            self._report(Progress(known=known, expanded=expanded, starts=self._starts))
        limit = self._budget.seconds
        if limit is not None and time.monotonic() - self._begun > limit:
            raise _OverBudgetError(self._so_far(f"{limit:g} seconds are over"))

    def _make_room(self, count: int) -> None:
        """Grow so that ``count`` more states fit; only these may go beyond the limit."""
        if self.known > self._limit:
            raise _OverBudgetError(self._so_far(f"the budget is {self._limit:,} states"))
        needed = self.known + count
        if needed > len(self.states):
            size = max(needed, min(2 * len(self.states), self._limit))
            # In place: old and new arrays together could exceed the budget.
            self.states.resize((size, self.states.shape[1]), refcheck=False)
            self._parents.resize(size, refcheck=False)
        if needed > len(self._table) * 5 // 8:
            self._table = np.zeros(0, np.int32)
            self._table = np.zeros(_slots(len(self.states)), np.int32)
            rehash_kernel(self.states, self._table, self.known)

    def _so_far(self, why: str) -> str:
        return (
            f"{why}; {self._starts:,} start states were entered, {self.known:,} states are known "
            f"and {int(self._counters[1]):,} of them expanded, none of which fails"
        )

    def _path(self, state: int, outcome: int) -> NDArray[Any]:
        """Vectors from a start to ``state``, and on to one that fails; all lead there now."""
        self._next[state] = outcome
        numbers = [state]
        while (parent := self._parent(numbers[-1])) >= 0:
            self._next.setdefault(parent, numbers[-1])
            numbers.append(parent)
        for number in numbers:
            self._parents[number] = p.LEADS - 1 - self._parent(number)
        numbers.reverse()
        while (after := self._next[numbers[-1]]) != numbers[-1]:
            numbers.append(after)
        return self._task.engine.unpack(self.states[numbers])

    def _parent(self, number: int) -> int:
        parent = int(self._parents[number])
        return p.LEADS - 1 - parent if parent <= p.LEADS else parent

    def forget(self) -> None:
        """Free all but the states."""
        self._table, self._parents = np.zeros(0, np.int32), np.zeros(0, np.int32)

    def answer(self, verdict: Verdict, **more: Any) -> Verification:
        """The result with its statistics."""
        held = self.states.nbytes + self._parents.nbytes + self._table.nbytes
        statistics = {
            "states": self.known,
            "expanded": int(self._counters[1]) - self._skipped,
            "transitions": int(self._counters[2]),
            "starts": self._starts,
            "megabytes": round(held / 1e6, 3),
            "seconds": round(time.monotonic() - self._begun, 6),
        }
        return Verification(verdict=verdict, method="explicit", statistics=statistics, **more)


def _slots(states: int) -> int:
    """The least power of two that ``states`` fill to five eighths at most."""
    return 1 << max(4, (states * 8 // 5).bit_length())


def _most_within(size: int, width: int) -> int:
    """States of ``width`` words that fit ``size`` bytes with parents and table."""
    best = 1
    for bits in range(4, 33):
        slots = 1 << bits
        best = max(best, min((size - 4 * slots) // (8 * width + 4), slots * 5 // 8 - 1))
    return best
