"""Prove a policy safe by boxes: cover what it can reach, cut the boxes finer where that fails.

The boxes are cells of a grid, one set of cuts per variable. All cells that can be reached
are found with interval arithmetic; none of them can fail: they are the proof. Otherwise a way
over cells to one that can fail is followed by smaller boxes. Where these do not come through,
the grid is cut so that the way is gone; where they do, states in them are run for real.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Budget, Verdict
from safetest_gym.errors import StartError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.policies.policy import Policy
from safetest_gym.starts.base import StartSet
from safetest_gym.verify.boxes import BoxSystem
from safetest_gym.verify.covering import Cover, TooManyCellsError
from safetest_gym.verify.explicit import verify_explicit
from safetest_gym.verify.grid import Grid
from safetest_gym.verify.inductive import InductiveBoxes
from safetest_gym.verify.narrowing import Boxes
from safetest_gym.verify.refinement import Refiner, Trace
from safetest_gym.verify.result import Progress, Report, Verification
from safetest_gym.verify.starting import start_boxes

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["verify_abstract"]

_SAMPLE = 256
_SAMPLE_STATES = 300_000
_MOST_CELLS = 2_000_000
_MOST_LOOKS = 300_000
"""Boxes looked at in all rounds, where neither states nor seconds end the search."""
_BYTES_PER_CELL = 200
_MOST_SPLITS = 12
_MOST_ENDS = 16
_SEED = 0


class _OverBudgetError(Exception):
    """Why there is no answer."""


def verify_abstract(
    policy: Policy,
    task: Task,
    starts: StartSet | NDArray[Any],
    budget: Budget,
    report: Report | None = None,
    *,
    more: int = 0,
) -> Verification:
    """Prove or refute; ``policy`` is bound to ``task``.

    Args:
        more: unsafe runs to collect where the first is found.
    """
    with deep_recursion():
        search = _Search(policy, task, starts, budget, report)
        try:
            return search.answer(more)
        except _OverBudgetError as end:
            return search.result(Verdict.UNKNOWN, reason=str(end))


class _Search:
    def __init__(
        self,
        policy: Policy,
        task: Task,
        starts: StartSet | NDArray[Any],
        budget: Budget,
        report: Report | None,
    ) -> None:
        self._policy, self._task, self._starts = policy, task, starts
        self._budget, self._report = budget, report
        self._begun = time.monotonic()
        self._system = BoxSystem(task, policy)
        self._grid = Grid(self._system.domain, self._system.narrower.whole)
        self._boxes = start_boxes(starts, self._system.narrower, self._system.domain)
        self._cut_naturally()
        self._rng = np.random.default_rng(_SEED)
        self._round = self._cells = self._more = self._looks = 0
        self._limit = min(budget.states or _MOST_CELLS, _MOST_CELLS)
        if budget.megabytes is not None:
            self._limit = min(self._limit, max(1, int(budget.megabytes * 1e6 / _BYTES_PER_CELL)))

    def _cut_naturally(self) -> None:
        """Real variables where the task compares them, and where the starts end."""
        cuts = self._system.constants()
        for column in np.flatnonzero(~self._system.narrower.whole).tolist():
            ends = np.unique(np.concatenate([side[:, column] for side in self._boxes]))
            if len(ends) <= _MOST_ENDS:
                cuts += [(column, float(end)) for end in ends]
        for column, at in cuts:
            # From the number on, and from the next one on: "<" and "≤" both end there.
            self._grid.add(column, at)
            self._grid.add(column, float(np.nextafter(at, np.inf)))

    def answer(self, more: int) -> Verification:
        """Rounds of covering and cutting."""
        self._more, budget = more, self._budget
        run = self._run_from(self._sampled())
        while run is None:
            self._round += 1
            if self._looks > _MOST_LOOKS and budget.states is None and budget.seconds is None:
                raise _OverBudgetError(self._so_far(f"{self._looks:,} boxes were looked at"))
            cover = self._cover()
            if not cover.paths:
                cells = self._grid.cells(cover.reached)
                proof = InductiveBoxes(self._task.digest, tuple(self._grid.cuts), cells)
                return self.result(Verdict.SAFE, proof=proof)
            run = self._refine(cover)
        return self.result(Verdict.UNSAFE, run=run.run, more=run.more)

    def _cover(self) -> Cover:
        if not self._grid.numbered:
            raise _OverBudgetError(self._so_far("the grid has more than 2**62 cells"))
        cover = Cover(self._system, self._grid, self._limit, self._tell)
        try:
            cover.search(self._boxes)
        except TooManyCellsError as error:
            why = f"{error.args[0]:,} boxes are more than the limit of {self._limit:,}"
            raise _OverBudgetError(self._so_far(why)) from None
        self._cells = len(cover.reached)
        self._looks += self._cells
        return cover

    def _refine(self, cover: Cover) -> Verification | None:
        """Cut the grid; or a run that fails."""
        refiner = Refiner(self._system, self._grid, self._boxes)
        low, high = self._grid.boxes(self._grid.cells(cover.reached))
        reached = low.min(axis=0)[None, :], high.max(axis=0)[None, :]
        traces: list[Trace] = []
        for path in cover.paths:
            self._tell(self._cells, self._cells)
            traces.append(refiner.follow(path))
            if traces[-1].failing:
                run = self._run_from(self._points(traces[-1].boxes[0]))
                if run is not None:
                    return run
        changed = False
        cuts = [cut.copy() for cut in self._grid.cuts]
        for path, trace in zip(cover.paths, traces, strict=True):
            again = Grid(self._system.domain, self._system.narrower.whole)
            again.cuts = [cut.copy() for cut in cuts]
            changed |= Refiner(self._system, again, self._boxes).cut(path, trace, reached)
            self._grid.join(again)
        if not changed:
            if self._system.splits >= _MOST_SPLITS:
                raise _OverBudgetError(self._so_far("no cut of the boxes tells more"))
            self._system.splits += 2
        return None

    def _sampled(self) -> NDArray[Any]:
        if isinstance(self._starts, np.ndarray):
            picked = self._rng.permutation(len(self._starts))[:_SAMPLE]
            return self._task.engine.vectors(self._starts[picked])
        try:
            return self._starts.sample(_SAMPLE, self._rng)
        except StartError:  # none, or too thin to be hit: boxes may still prove it safe
            return np.zeros((0, self._task.num_variables), self._task.dtype)

    def _points(self, boxes: Boxes) -> NDArray[Any]:
        """Start states within boxes, drawn at random; maybe none."""
        row = self._rng.integers(len(boxes[0]), size=_SAMPLE)
        low, high = boxes[0][row], boxes[1][row]
        points = low + self._rng.random(low.shape) * (high - low)
        points[: len(boxes[0])] = low[: len(boxes[0])]
        whole = self._system.narrower.whole
        points[:, whole] = np.rint(points[:, whole])
        points = np.unique(np.clip(points, low, high), axis=0)
        if isinstance(self._starts, np.ndarray):
            listed = {tuple(row) for row in self._starts.astype(np.float64).tolist()}
            kept = [tuple(point) in listed for point in points.tolist()]
        else:
            kept = [self._starts.contains(point) for point in points]
        return self._task.engine.vectors(points[np.array(kept, np.bool_)])

    def _run_from(self, starts: NDArray[Any]) -> Verification | None:
        """Runs that fail, looked for from some start states."""
        budget = Budget(states=_SAMPLE_STATES, seconds=self._left())
        found = verify_explicit(self._policy, self._task, [starts], budget, more=self._more)
        return found if found.run is not None else None

    def _left(self) -> float | None:
        if self._budget.seconds is None:
            return None
        return max(1e-3, self._budget.seconds - (time.monotonic() - self._begun))

    def _tell(self, known: int, expanded: int) -> None:
        if self._report is not None:
            self._report(Progress(known=known, expanded=expanded, round=self._round))
        limit = self._budget.seconds
        if limit is not None and time.monotonic() - self._begun > limit:
            raise _OverBudgetError(self._so_far(f"{limit:g} seconds are over"))

    def _so_far(self, why: str) -> str:
        pieces = [f"{len(cut) - 1} of {variable.name}" for cut, variable in self._pieces()]
        return (
            f"{why}; round {self._round}, pieces: {', '.join(pieces) or 'one box'}; "
            f"{self._cells:,} boxes were reached in the last round"
        )

    def _pieces(self) -> list[tuple[NDArray[np.float64], Any]]:
        both = zip(self._grid.cuts, self._task.variables, strict=True)
        return [(cut, variable) for cut, variable in both if len(cut) > 2]

    def result(self, verdict: Verdict, **more: Any) -> Verification:
        """The result with its statistics."""
        statistics = {
            "boxes": self._cells,
            "rounds": self._round,
            "pieces": sum(len(cut) - 1 for cut, _ in self._pieces()),
            "seconds": round(time.monotonic() - self._begun, 6),
        }
        return Verification(verdict=verdict, method="abstract", statistics=statistics, **more)
