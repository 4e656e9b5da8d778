"""Prop-U on decision diagrams, see `deciders.regression`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from safetest_gym.deciders.base import PART, Decider
from safetest_gym.deciders.regression import Regression
from safetest_gym.deciders.space import Order
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.engine.kernels import search as k
from safetest_gym.errors import EngineError

__all__ = ["PropuBddDecider"]

SLICE = 0.05
"""Most seconds between two looks at the budget."""

_NODE_BYTES = 100


class PropuBddDecider(Decider):
    """Prop-U by regression with decision diagrams ([S] Alg. 5): all states of a task at once.

    The first query computes the unsafe region, reachable or not; all others look it up.
    For tasks with bounded variables only. A budget of states has no effect.
    """

    name: ClassVar[str] = "propu-bdd"
    finite_radius: ClassVar[bool] = False
    supports_facts: ClassVar[bool] = False
    orders: ClassVar[tuple[Order, ...]] = ("app",)

    def _prepare(self) -> None:
        self._regression = Regression(self.task)
        self._work: Iterator[None] | None = None
        self._is_complete = False

    def make_room(self, answers: int = PART) -> None:
        """Nothing: the unsafe region is computed once, and a budget of states has no effect."""

    def _begin(self, root: int) -> None:
        """Nothing depends on the root."""

    def _advance(self, root: int) -> int:
        seconds = self.budget.seconds
        until = time.monotonic() + (SLICE if seconds is None else min(SLICE, seconds))
        while not self._is_complete:
            self._continue_work()
            if time.monotonic() >= until:
                break
        if not self._is_complete:
            return k.TIME
        self.verdict[root] = self._look_up(root)
        return k.DONE

    def _continue_work(self) -> None:
        if self._work is None:
            self._work = self._regression.work()
        work, self._work = self._work, None  # an interrupted generator cannot go on
        if next(work, self) is self:
            self._is_complete = True
        else:
            self._work = work

    def _look_up(self, root: int) -> Verdict:
        regression, task = self._regression, self.task
        vector = task.engine.unpack(self.space.words(np.array([root])))[0]
        bits: dict[str, bool] = {}
        for variable, value in zip(task.model.variables, vector.tolist(), strict=True):
            bits |= regression.encoding.bits_of(variable, int(value))
        bdd = regression.bdd
        if bdd.let(bits, regression.unsafe) == bdd.true:
            return Verdict.UNSAFE
        if bdd.let(bits, regression.doubtful) == bdd.true:
            raise EngineError(
                f"whether {task.as_dict(vector)} is safe depends on states in which the model "
                "has no value; otf tells whether they are ever reached"
            )
        return Verdict.SAFE

    def _grow(self, code: int) -> None:
        raise AssertionError("no kernel, no lists")

    def _reset(self) -> None:
        if self.space.known == 0:
            self._prepare()

    def _bytes(self) -> int:
        return len(self._regression.bdd) * _NODE_BYTES
