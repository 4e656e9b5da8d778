"""Start states given by a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import LimitError, StartError
from safetest_gym.jani.tree import Expression, StartCondition, Variable
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.bulk import holds_in
from safetest_gym.starts.ordering import lexicographic
from safetest_gym.starts.plan import Plan, make_plan

__all__ = ["ConditionStarts", "Satisfies"]

Satisfies = Callable[[NDArray[Any]], NDArray[np.bool_]]
"""Per row of states, shape (n, V): does the condition hold?"""

PROBE_SEED = 0
PROBE_STATES = 2_000_000
MIN_ACCEPTANCE = 1e-4
_BATCH = 2**17


class ConditionStarts(StartSet):
    """The states within the variables' bounds that satisfy a condition.

    Counted and drawn exactly by a decision diagram; where the condition compares reals with
    each other, the diagram proposes states and the condition accepts or rejects them; if
    that accepts next to nothing and the condition is linear, hit-and-run proposes.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        start: StartCondition,
        *,
        satisfies: Satisfies | None = None,
    ) -> None:
        super().__init__(variables)
        self._condition = start.condition
        self._satisfies = satisfies
        self._plan: Plan | None = None
        self._certain: bool | None = None
        self._walking: bool | None = None

    def count(self) -> int | None:
        """How many states there are; None if infinitely many."""
        return self.plan.count()

    @property
    def condition(self) -> Expression:
        """What holds in exactly these states, within the variables' bounds."""
        return self._condition

    @property
    def plan(self) -> Plan:
        """How the states are drawn; built at first use."""
        if self._plan is None:
            self._plan = make_plan(self.variables, self._condition)
        return self._plan

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """``n`` independent states, uniform over the set."""
        self._require_number(n)
        if self._certain is None:
            if self.plan.count() == 0:
                raise self._empty()
            self._certain = self.plan.exact
        if self._certain:
            return self._draw(n, rng, walking=False)
        if self._walking is None:
            self._walking = self._must_walk()
        found: list[NDArray[Any]] = [np.empty((0, len(self.variables)), dtype=self.dtype)]
        missing, rate = n, 1.0
        while missing > 0:
            size = min(_BATCH, int(missing / rate * 1.1) + 16)
            states = self._draw(size, rng, walking=self._walking)
            accepted = states[self._accepts(states)]
            rate = max(len(accepted) / size, MIN_ACCEPTANCE)
            found.append(accepted[:missing])
            missing -= len(found[-1])
        return np.concatenate(found)

    def enumerate(self, limit: int) -> NDArray[Any]:
        """All states in lexicographic order."""
        count = self.plan.count()
        if count is None:
            raise StartError("there are infinitely many start states; they cannot be listed")
        if count > limit:
            raise LimitError(f"{count} start states are more than the limit {limit}")
        out = np.empty((count, len(self.variables)), dtype=self.dtype)
        if count > 0:
            columns = self.plan.enumerate(count)
            order = lexicographic([columns[column] for column in sorted(columns)])
            for column, values in columns.items():
                out[:, column] = values[order]
            for column, value in self.plan.fixed.items():
                out[:, column] = value
        return out

    def contains(self, state: ArrayLike) -> bool:
        """Is ``state`` within all bounds, and does it satisfy the condition?

        Raises:
            EvaluationError: the condition has no value there.
        """
        values = self._values(self._row(state))
        return values is not None and bool(evaluate(self._condition, values))

    def _draw(self, n: int, rng: np.random.Generator, *, walking: bool) -> NDArray[Any]:
        states = np.empty((n, len(self.variables)), dtype=self.dtype)
        self.plan.draw(states, rng, walking=walking)
        return states

    def _accepts(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        if self._satisfies is not None:
            return np.asarray(self._satisfies(states), dtype=np.bool_)
        return holds_in(self.plan.remainder, states)

    def _must_walk(self) -> bool:
        """Is hit-and-run needed? Tried with a generator of its own, so always the same."""
        accepted, tried = self._probe(walking=False)
        if accepted >= MIN_ACCEPTANCE * tried:
            return False
        if any(part.polytope for part in self.plan.parts):
            accepted, tried = self._probe(walking=True)
            if accepted >= MIN_ACCEPTANCE * tried:
                return True
        raise StartError(
            f"the start condition holds in {accepted} of {tried} states drawn within its "
            "bounds, too few to draw from; bound the reals more tightly, replace equations "
            "between them by ranges, or list the start states"
        )

    def _probe(self, *, walking: bool) -> tuple[int, int]:
        rng = np.random.default_rng(PROBE_SEED)
        accepted = tried = 0
        while accepted < 100 and tried < PROBE_STATES:
            size = 1024 if tried == 0 else min(_BATCH, PROBE_STATES - tried)
            accepted += int(self._accepts(self._draw(size, rng, walking=walking)).sum())
            tried += size
        return accepted, tried
