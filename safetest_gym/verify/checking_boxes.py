"""Check a set of boxes with scalar interval arithmetic; shares no code with the verifier.

Each box is taken on its own: no state in it fails, and whatever the policy can do leads into
boxes of the set. Where that is not plain to see, the box is cut and its halves are looked at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.prepared import Preparation, PreparedEdge
from safetest_gym.engine.ranges import Ranges
from safetest_gym.engine.rewrite import REAL, Inliner, reads
from safetest_gym.errors import CertificateError
from safetest_gym.jani.tree import FALSE, Expression, Literal, Operation, Reference, Variable
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.condition import ConditionStarts
from safetest_gym.starts.listed import ListedStarts
from safetest_gym.verify.inductive import InductiveBoxes
from safetest_gym.verify.slow_scores import SlowScores

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["BoxesChecker"]

_MOST_PARTS = 50_000
"""Parts of one box that are looked at before the checker gives up."""

Box = tuple[tuple[float, ...], tuple[float, ...]]
Cut = tuple[int, float]
"""A column, and the least value of the upper half."""


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Why a part is not shown to be fine, and where to cut it: tests, then variables."""

    why: str
    cuts: list[Cut]
    variables: set[Variable]


class BoxesChecker:
    """Goes through the boxes of a proof.

    Args:
        policy: bound to the task.
        report: is told how many boxes are checked.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        proof: InductiveBoxes,
        report: Callable[[int], None] | None = None,
    ) -> None:
        self._task, self._policy, self._proof, self._report = task, policy, proof, report
        self._whole = [variable.kind != "real" for variable in task.variables]
        self._cuts = _read_cuts(task, proof)
        self._cells = set(map(tuple, proof.cells.tolist()))
        preparation = Preparation(task.model, task.engine.composition)
        self._edges = [
            (self._action(rule.label, edge.number), edge)
            for rule in task.engine.composition.rules
            for edge in preparation.combinations(rule)
        ]
        self._failing = preparation.inline.plain(task.property.failure or FALSE)
        self._goal = preparation.inline.plain(task.property.goal or FALSE)

    def _action(self, label: int, number: int) -> int:
        if self._task.model.type == "dtmc":
            return 0
        return label if self._task.action_mode == "label" else number

    def check_starts(self, starts: StartSet | NDArray[Any]) -> None:
        """Every start state must be in a box."""
        if isinstance(starts, ListedStarts):
            starts = starts.enumerate(starts.count())
        if isinstance(starts, np.ndarray):
            for row in starts.astype(np.float64).tolist():
                if not self._covered((tuple(row), tuple(row))):
                    raise CertificateError(f"the start state {row} is in none of the boxes")
            return
        if not isinstance(starts, ConditionStarts):
            raise CertificateError("start states must be a list or a condition")
        condition = Inliner().plain(starts.condition)

        def doubt(box: Box) -> _Doubt | None:
            if self._ranges(box).of(condition).upper == 0 or self._covered(box):
                return None
            grid = [(i, cut) for i, cuts in enumerate(self._cuts) for cut in cuts]
            cuts = [*_tests(condition, self._task.variables), *grid]
            return _Doubt("start states are missing", cuts, reads([condition]))

        domain = tuple(c[0] for c in self._cuts), tuple(map(self._last, range(len(self._cuts))))
        self._check(domain, doubt)

    def _last(self, column: int) -> float:
        return self._below(column, self._cuts[column][-1])

    def _below(self, column: int, cut: float) -> float:
        return cut - 1 if self._whole[column] else math.nextafter(cut, -math.inf)

    def check_boxes(self) -> None:
        """No box fails, and nothing leads out of them."""
        for number, cell in enumerate(self._proof.cells.tolist()):
            low = tuple(self._cuts[i][piece] for i, piece in enumerate(cell))
            high = tuple(self._below(i, self._cuts[i][p + 1]) for i, p in enumerate(cell))
            self._check((low, high), self._doubt)
            if self._report is not None:
                self._report(number + 1)

    def _check(self, box: Box, doubt: Callable[[Box], _Doubt | None]) -> None:
        """Cut the box until there is no doubt about any part."""
        stack = [box]
        for _ in range(_MOST_PARTS):
            if not stack:
                return
            part = stack.pop()
            found = doubt(part)
            if found is not None:
                stack += self._halves(part, box, found)
        raise CertificateError(f"not shown within {_MOST_PARTS} parts: {self._shown(box)}")

    def _halves(self, part: Box, box: Box, doubt: _Doubt) -> list[Box]:
        inside = [(i, at) for i, at in doubt.cuts if part[0][i] < at <= part[1][i]]
        cut = inside[0] if inside else self._middle(part, box, doubt.variables)
        if cut is None:
            raise CertificateError(f"{doubt.why}: {self._shown(part)}")
        column, at = cut
        low, high = list(part[0]), list(part[1])
        low[column], high[column] = at, self._below(column, at)
        return [(part[0], tuple(high)), (tuple(low), part[1])]

    def _middle(self, part: Box, box: Box, variables: set[Variable]) -> Cut | None:
        """Halve the side that is widest in comparison with the whole box."""
        best, widest = None, 0.0
        for column, variable in enumerate(self._task.variables):
            low, high = part[0][column], part[1][column]
            whole = box[1][column] - box[0][column]
            if variable not in variables or low == high or not math.isfinite(whole):
                continue
            middle = low / 2 + high / 2
            middle = math.ceil(middle) if self._whole[column] else middle
            if low < middle <= high and (high - low) / whole > widest:
                best, widest = (column, middle), (high - low) / whole
        return best

    def _doubt(self, box: Box) -> _Doubt | None:
        """Is it open whether the box is fine?"""
        ranges = self._ranges(box)
        if ranges.of(self._failing).upper != 0:
            tests = _tests(self._failing, self._task.variables)
            return _Doubt("a state may fail", tests, reads([self._failing]))
        if ranges.of(self._goal).lower == 1:
            return None
        enabled = [(a, e, _enabled(e, ranges)) for a, e in self._edges]
        sure = {action for action, _, (always, _) in enabled if always}
        scores = SlowScores(self._policy, np.array(box[0]), np.array(box[1]))
        for action, edge, (_, sometimes) in enabled:
            if not sometimes or not all(b == action or scores.beats(action, b) for b in sure):
                continue
            for destination in edge.destinations:
                chance = destination.probability
                if chance is not None and ranges.of(chance).upper <= 0:
                    continue
                values = destination.update.values
                if not self._covered(self._image(box, values, ranges)):
                    read = {*reads(edge.conjuncts), *reads(values.values()), *self._goal_reads}
                    read |= {self._task.variables[i] for i in self._policy.interface.columns}
                    why = f"an outcome of {self._task.actions[action]} is in none of the boxes"
                    return _Doubt(why, self._cuts_for(edge, scores), read)
        return None

    @property
    def _goal_reads(self) -> set[Variable]:
        return reads([self._goal])

    def _cuts_for(self, edge: PreparedEdge, scores: SlowScores) -> list[Cut]:
        variables = self._task.variables
        own = [cut for condition in edge.conjuncts for cut in _tests(condition, variables)]
        others = [cut for _, e in self._edges for c in e.conjuncts for cut in _tests(c, variables)]
        return [*own, *scores.thresholds, *_tests(self._goal, variables), *others]

    def _image(self, box: Box, values: dict[Variable, Expression], ranges: Ranges) -> Box:
        """What follows, as far as it is within the variables' bounds."""
        low, high = list(box[0]), list(box[1])
        for column, variable in enumerate(self._task.variables):
            if variable in values:
                found = ranges.of(values[variable])
                low[column] = max(float(found.lower), self._cuts[column][0])
                high[column] = min(float(found.upper), self._last(column))
        return tuple(low), tuple(high)

    def _covered(self, box: Box) -> bool:
        """Is every state of the box in a box of the set?"""
        spans = []
        for cuts, low, high in zip(self._cuts, *box, strict=True):
            if low > high:
                return True  # nothing in it
            if low < cuts[0] or high >= cuts[-1]:
                return False
            first = int(np.searchsorted(cuts, low, side="right")) - 1
            last = int(np.searchsorted(cuts, high, side="right")) - 1
            spans.append(range(first, last + 1))
        if math.prod(map(len, spans)) > len(self._cells):
            return False
        return all(cell in self._cells for cell in itertools.product(*spans))

    def _ranges(self, box: Box) -> Ranges:
        known: dict[Variable, tuple[int | float, int | float]] = {}
        for variable, low, high in zip(self._task.variables, *box, strict=True):
            exact = variable.kind != "real"
            known[variable] = (int(low), int(high)) if exact else (low, high)
        return Ranges(known)

    def _shown(self, box: Box) -> str:
        names = (variable.name for variable in self._task.variables)
        return ", ".join(
            f"{n}={low:g}" if low == high else f"{n}={low:g}..{high:g}"
            for n, low, high in zip(names, *box, strict=True)
        )


def _enabled(edge: PreparedEdge, ranges: Ranges) -> tuple[bool, bool]:
    """Always, sometimes."""
    found = [ranges.of(condition) for condition in edge.conjuncts]
    sometimes = all(part.upper == 1 for part in found)
    return sometimes and all(part.lower == 1 and not part.fails for part in found), sometimes


def _tests(condition: Expression, variables: tuple[Variable, ...]) -> list[Cut]:
    """Where tests of one variable against a number change."""
    return list(_walk(condition, {variable: i for i, variable in enumerate(variables)}))


def _walk(node: Expression, columns: dict[Variable, int]) -> Iterator[Cut]:
    if not isinstance(node, Operation):
        return
    if node.operator not in ("=", "≠", "<", "≤"):
        for operand in node.operands:
            yield from _walk(operand, columns)
        return
    left, right = map(_plain, node.operands)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Reference) and isinstance(other, Literal):
            at = float(other.value)
            exact = side.kind != "real"
            yield columns[side.variable], float(math.ceil(at)) if exact else at
            yield (
                columns[side.variable],
                math.floor(at) + 1 if exact else math.nextafter(at, math.inf),
            )


def _plain(node: Expression) -> Expression:
    if isinstance(node, Operation) and node.operator == REAL:
        return node.operands[0]
    return node


def _read_cuts(task: Task, proof: InductiveBoxes) -> list[list[float]]:
    """The cuts as lists, if they cut the variables' domains and the cells are of them."""
    cells, variables = proof.cells, task.variables
    if len(proof.cuts) != len(variables) or cells.ndim != 2 or cells.shape[1] != len(variables):
        raise CertificateError("the proof's boxes are no boxes of the task's states")
    for column, (cuts, variable) in enumerate(zip(proof.cuts, variables, strict=True)):
        exact = variable.kind != "real"
        low = 0.0 if variable.kind == "bool" else variable.lower
        high = 1.0 if variable.kind == "bool" else variable.upper
        first = -math.inf if low is None else float(low)
        last = math.inf if high is None else float(high)
        end = last + 1 if exact else math.nextafter(last, math.inf)
        wrong = len(cuts) < 2 or cuts[0] != first or cuts[-1] != end
        if wrong or not (np.diff(cuts) > 0).all() or (exact and (cuts != np.rint(cuts)).any()):
            raise CertificateError(f"the cuts of {variable.name} do not cut its domain")
        if len(cells) and not 0 <= cells[:, column].min() <= cells[:, column].max() < len(cuts) - 1:
            raise CertificateError(f"a box has a piece of {variable.name} that does not exist")
    return [cuts.tolist() for cuts in proof.cuts]
