"""What all deciders share: queries, budgets, growth, judging states, errors, safe actions.

An algorithm is a class in `deciders/<name>.py` and a kernel in `engine/kernels/<name>.py`:

- Set ``name`` and, if it cannot do everything, ``finite_radius = False`` or ``orders``;
  `Decider` then refuses what it cannot do.
- In ``_prepare``, called once, make what is kept per state with ``self.space.column(dtype,
  fill)``: it grows in place, new states get ``fill``, `clear` resets it. ``self.verdict``
  is such a column; terminal states have their verdict as soon as they have a number.
  Other lists are the algorithm's own arrays; grow them in place as well
  (``array.resize(..., refcheck=False)``).
- ``_begin(root)`` starts a search. ``_advance(root)`` runs the kernel for one slice and
  returns a code of `kernels.search`; `DONE` promises that ``self.verdict[root]`` is settled.
  The base grows states and rows and looks at budgets; ``_grow(code)`` is called for codes
  from `NO_ROOM` on. ``self.counters`` goes into the kernel: `kernels.search` uses the
  first places, ``_prepare`` may enlarge it.
- Write nothing into ``verdict`` that is not proved: it stays for later queries, is saved,
  and survives a budget that runs out, an error and an interrupt at any point. If facts do
  not support each other (see `deciders.proving`, which makes certificates from them), set
  ``supports_facts = False``.
- ``_reset()`` forgets unfinished work (all that is not ``verdict``); with ``_begin`` for
  another root it may be called at any time.
- A search whose budget ran out and that is asked for the same root again goes on without
  ``_begin``.
- ``_bytes()`` is the memory of the algorithm's own lists; ``_unlearn()`` forgets what is
  no fact but helps to find facts.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.cache import read_facts, write_facts
from safetest_gym.deciders.proving import prove
from safetest_gym.deciders.space import Order, StateSpace
from safetest_gym.deciders.verdict import Budget, Statistics, Verdict
from safetest_gym.engine.kernels import search as k
from safetest_gym.engine.kernels.weighing import LISTED, OUTCOMES, number_kernel, weigh_kernel
from safetest_gym.errors import ConfigError, EngineError, LimitError, PolicyError

if TYPE_CHECKING:
    from safetest_gym.deciders.certificate import Certificate
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["NOT_APPLICABLE", "PART", "UNLIMITED", "Decider", "require_decider_of"]

NOT_APPLICABLE = 3
"""Beside the numbers of `Verdict`, in `Decider.action_verdicts`."""

KNOWN = 5_000_000
"""States known that `Decider.make_room` takes for a full budget where there is none."""

PART = 64
"""States to ask for between two calls of `Decider.make_room`; with fewer answers than that,
forgetting what they took would not pay."""

UNLIMITED = 2**31 - 2
"""States that kernels can number."""

_SAFE = int(Verdict.SAFE)  # numpy compares with enumerations slowly
_VERDICTS = tuple(Verdict)


class Decider(ABC):
    """Decides states; what it has found out stays true for later queries.

    Attributes:
        task: the task.
        radius: deviations from the policy allowed along a run.
        budget: may be changed at any time; a query then goes on where it stopped.
        deadline: moment of ``time.monotonic`` from which on nothing is searched; for callers
            with limited time for many queries.
        space: the states known.
        verdict: per known state, a number of `Verdict`.
    """

    name: ClassVar[str]
    finite_radius: ClassVar[bool] = True
    orders: ClassVar[tuple[Order, ...]] = ("app", "learn", "rand")
    """The first is the default."""
    supports_facts: ClassVar[bool] = True

    def __init__(
        self,
        task: Task,
        *,
        policy: Policy | None = None,
        radius: float = math.inf,
        order: Order | None = None,
        budget: Budget | None = None,
    ) -> None:
        if radius != math.inf and not self.finite_radius:
            raise ConfigError(f"{self.name} cannot decide with a finite radius")
        order = order or self.orders[0]
        self.space = StateSpace(task, policy=policy, radius=radius, order=order)
        if order not in self.orders:
            raise ConfigError(
                f"{self.name} has the orders {', '.join(self.orders)}, but not {order}"
            )
        self.task = task
        self.radius = radius
        self.budget = budget or Budget()
        self.deadline: float | None = None
        self.verdict = self.space.column(np.uint8)
        self.counters = np.zeros(k.OWN, np.int64)
        self._policy = policy
        self._listed = np.zeros(64, np.int32)
        self._is_supported = self.supports_facts
        self._unfinished = -1
        self._queries = self._unknown = self._answered_before = 0
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _begin(self, root: int) -> None: ...

    @abstractmethod
    def _advance(self, root: int) -> int: ...

    @abstractmethod
    def _grow(self, code: int) -> None: ...

    @abstractmethod
    def _reset(self) -> None: ...

    @abstractmethod
    def _bytes(self) -> int: ...

    def _unlearn(self) -> None:  # noqa: B027  # most algorithms learn nothing
        """Forget what was learnt about the order of actions."""

    def clear(self) -> None:
        """Forget everything, at a cost linear in what was known."""
        self.forget_facts()
        self._unlearn()

    def forget_facts(self) -> None:
        """Forget all states and statistics, but not which actions are best tried first."""
        self._unfinished = -1
        self._is_supported = self.supports_facts
        self.space.clear()
        self._reset()
        counters = self.counters
        counters[k.KNOWN] = counters[k.EXPANDED] = counters[k.TRIED] = 0
        self._queries = self._unknown = self._answered_before = 0

    def make_room(self, answers: int = PART) -> None:
        """Forget what is known if it fills half of the budget; for callers who ask for ever.

        A budget of states limits what is known, so what earlier queries needed would leave
        ever less to later ones. Where it is full after fewer than so many answers, nothing is
        forgotten: then queries are too much for it. Statistics go on.
        """
        answered = self._queries - self._unknown
        if answered - self._answered_before < answers or not self._is_half_full():
            return
        queries, unknown = self._queries, self._unknown
        done = self.counters[[k.EXPANDED, k.TRIED]]
        self.forget_facts()
        self._queries, self._unknown, self._answered_before = queries, unknown, answered
        self.counters[[k.EXPANDED, k.TRIED]] = done

    def _is_half_full(self) -> bool:
        budget = self.budget
        most = KNOWN if budget.states is None else budget.states // 2
        if self.space.known > most:
            return True
        return budget.megabytes is not None and self.statistics.megabytes > budget.megabytes / 2

    def follow(self, policy: Policy) -> None:
        """Go on with another policy; with an infinite radius all that is known stays true."""
        if self.radius != math.inf:
            self.clear()
        self.space.follow(policy)
        self._policy = policy
        self._unfinished = -1
        self._reset()

    def decide(self, state: NDArray[Any]) -> Verdict:
        """Is there a way to surely never fail from ``state``?"""
        row = self.space.packed(np.asarray(state).reshape(1, -1))
        root = int(self._numbers(row)[0])
        found = self.verdict[root]
        if found == 0:
            self._search(root)
            found = self.verdict[root]
        self._queries += 1
        self._unknown += int(found == 0)
        verdict: Verdict = _VERDICTS[found]
        return verdict

    def decide_many(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """Verdicts of state vectors (n, V), as numbers of `Verdict`."""
        return self._decide_packed(self.space.packed(states))

    def safe_actions(self, state: NDArray[Any]) -> NDArray[np.bool_]:
        """Which applicable actions have only outcomes that are known to be safe.

        Where the budget ended, an action does not count as safe; `action_verdicts` tells
        which ones these are, and `statistics` how many UNKNOWN answers there were.
        """
        mask: NDArray[np.bool_] = self.action_verdicts(np.asarray(state).reshape(1, -1))[0] == _SAFE
        return mask

    def action_verdicts(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """Per state and action, (n, A): what the worst outcome is, or `NOT_APPLICABLE`.

        With a finite radius, an action that is not the policy's uses up one deviation.
        """
        rows = self.space.packed(states)
        weights = np.full((len(rows), self.task.num_actions), NOT_APPLICABLE, np.uint8)
        listed, outcomes = self._weigh(rows, weights)
        if listed:
            self._search_all(np.array(listed))
            self._weigh(rows, weights)
            self._unknown += len(listed) - int(np.count_nonzero(self.verdict[listed]))
        self._queries += outcomes
        return weights

    def _weigh(self, rows: NDArray[np.int64], weights: NDArray[np.uint8]) -> tuple[list[int], int]:
        """Fill in what is known; open outcomes that decide, and how many were looked at."""
        space = self.space
        self._tidy()
        self.counters[k.KNOWN], self.counters[k.LIMIT] = space.known, UNLIMITED
        listed = self._listed
        progress = np.zeros(3, np.int64)
        code = k.TIME
        while code != k.DONE:
            code = weigh_kernel(
                space.block,
                space.policy,
                space.arrays,
                self.verdict,
                self.counters,
                rows,
                weights,
                listed,
                progress,
            )
            space.known = int(self.counters[k.KNOWN])
            if code == k.NO_ROOM:
                listed = self._listed = np.zeros(2 * len(listed) + space.row_capacity, np.int32)
                progress[:] = 0
            else:
                self._continue(code)
        return listed[: progress[LISTED]].tolist(), int(progress[OUTCOMES])

    def certificate(self, state: NDArray[Any]) -> Certificate:
        """A proof of the verdict of ``state``, for `check_certificate`.

        Where facts may not support each other, as with some algorithms and after `load`,
        otf finds the proof anew within the same budget.

        Raises:
            LimitError: the budget ended before there was a verdict.
        """
        if self.decide(state) is Verdict.UNKNOWN:
            raise LimitError(f"the budget {self.budget} ended before the state was decided")
        if not self._is_supported:
            from safetest_gym.deciders.otf import OtfDecider

            prover = OtfDecider(
                self.task, policy=self._policy, radius=self.radius, budget=self.budget
            )
            return prover.certificate(state)
        row = self.space.packed(np.asarray(state).reshape(1, -1))
        return prove(self, int(self.space.find(row)[0]))

    def save(self, path: str | Path) -> None:
        """Write every proved fact to a file."""
        self._require_facts_without_policy()
        proved = np.flatnonzero(self.verdict[: self.space.known])
        write_facts(path, self.task, self.space.words(proved), self.verdict[proved])

    def load(self, path: str | Path) -> int:
        """Add the facts that `save` wrote for the same task; how many there are.

        Raises:
            CacheError: the file is broken, or of another task.
        """
        self._require_facts_without_policy()
        words, verdicts = read_facts(path, self.task)
        numbers = self._numbers(words)
        self._unfinished = -1
        self._is_supported = False
        self._reset()  # a search that went on would not see what becomes unsafe here
        self.verdict[numbers] = verdicts
        return len(numbers)

    def _require_facts_without_policy(self) -> None:
        if self.radius != math.inf:
            raise ConfigError("facts of a finite radius are about one policy; they are not saved")

    @property
    def statistics(self) -> Statistics:
        """What was done since `clear`."""
        return Statistics(
            queries=self._queries,
            unknown=self._unknown,
            expanded=int(self.counters[k.EXPANDED]),
            tried=int(self.counters[k.TRIED]),
            states=self.space.known,
            megabytes=(self.space.num_bytes + self._bytes()) / 1e6,
        )

    def _decide_packed(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        roots = self._numbers(rows)
        verdict = self.verdict
        self._search_all(roots)
        found: NDArray[np.uint8] = verdict[roots]
        self._queries += len(roots)
        self._unknown += len(found) - int(np.count_nonzero(found))
        return found

    def _numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of packed rows; new ones are judged."""
        space = self.space
        self._tidy()
        space.grow_states(space.known + len(rows))
        self.counters[k.KNOWN] = space.known
        found = np.empty(len(rows), np.int64)
        code = number_kernel(
            space.block, space.states, space.table, self.verdict, self.counters, rows, found
        )
        space.known = int(self.counters[k.KNOWN])
        if code != k.DONE:
            self._continue(code)
        return found

    def _tidy(self) -> None:
        """Put right what an interrupt just behind a kernel may have left."""
        space, counters = self.space, self.counters
        known = counters[k.KNOWN]
        if known > space.known:
            space.known = int(known)
        junk = counters[k.JUNK]
        if junk != 0:
            if junk > space.known:
                space.forget(space.known, int(junk))
            counters[k.JUNK] = 0

    def _search_all(self, roots: NDArray[np.int64]) -> None:
        """Settle all of them, as far as the budget allows for each."""
        for root in roots.tolist():
            if not self.verdict[root]:
                self._search(root)

    def _search(self, root: int) -> None:
        """Settle ``root``, or stop at the end of the budget."""
        budget = self.budget
        begun = time.monotonic()
        end = math.inf if self.deadline is None else self.deadline
        if begun >= end:
            return
        if budget.seconds is not None:
            end = min(end, begun + budget.seconds)
        self.counters[k.LIMIT] = budget.states or UNLIMITED
        if self._unfinished != root:
            self._unfinished = root
            self._begin(root)
        while True:
            code = self._advance(root)
            self.space.known = int(self.counters[k.KNOWN])
            if code == k.DONE:
                self._unfinished = -1
                return
            if code == k.OVER:
                return
            self._continue(code)
            if time.monotonic() >= end:
                return
            if budget.megabytes is not None and self.statistics.megabytes > budget.megabytes:
                return

    def _continue(self, code: int) -> None:
        """Make the room that a kernel asked for."""
        if code == k.NO_ROWS:
            self.space.grow_rows()
        elif code == k.NO_STATES:
            self.space.grow_states(self.space.known + self.space.row_capacity)
        elif code in (k.ERROR, k.NO_ACTION):
            self._raise(code)
        elif code >= k.NO_ROOM:
            self._grow(code)

    def _raise(self, code: int) -> None:
        """Raise what is wrong in the suspect; states that were not judged are forgotten."""
        words = self.space.words(np.array([self.counters[k.SUSPECT]]))[0]
        self._tidy()
        self._unfinished = -1
        self._reset()
        if code == k.NO_ACTION:
            state = self.task.as_dict(self.task.engine.unpack(words.reshape(1, -1))[0])
            raise PolicyError(f"the policy has no action in {state}")
        self.task.engine.explain(words)
        raise EngineError("unreachable")


def require_decider_of(task: Task, decider: object) -> None:
    """Refuse a decider of another task, as far as it says what task it is of."""
    theirs: Task = getattr(decider, "task", task)
    if theirs.digest != task.digest:
        raise ConfigError(
            f"the decider was made for another {theirs.name} than this {task.name}: model, "
            "constants, conditions and action mode must be the same"
        )
