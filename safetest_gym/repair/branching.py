"""A lower bound that looks at several demands together: who wins is branched over.

The relaxation lets a group be won by parts of several actions. Where it misses by most, there
is one branch for each good action, in which that action has to win. Every change is in one of
the branches, so the least of their bounds holds. Few groups decide; which ones, the first
branches tell, so the search begins again a few times, each time with more groups to branch
over. What all other groups demand is known from the cuts that the relaxation misses; branching
leads where it misses many more. A second search, on another processor, lets these in as it goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.bound import ROUNDING, Relaxed, disjunctive_cuts, weakest_cuts
from safetest_gym.repair.covering import UNIT, Covering, Vertex, undominated
from safetest_gym.repair.options import Options, scaled
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.stop import HardStop

__all__ = ["branched", "branched_beside", "is_leading"]

_WON = 1e-6
"""A group that misses its margin by no more than this is won."""
_MORE = 8
"""Groups that are added at a time to those that may be branched over."""
_ALIKE = 0.7
"""Of groups that share more than this part of their features, one is added at a time."""
_LOOKED_AT = 1000
"""Groups among which they are looked for, those that are missed by most."""
_SCOUTS, _SCOUTING = 4, 15
"""Searches that only find out which groups decide, and branches that they split."""
_MORE_CUTS, _AT_ONCE, _CUTTING = 80, 4, 3
"""Cuts that come in at a time, those that one linear program gets at a time, and how often."""
_CUT_MISSED = 0.02
"""Part of a cut that may be missed."""
_ROOM = 8_000_000
"""Entries of tableaus that are kept."""
_PER_PROGRAM = 700_000
"""What a linear program takes besides its pivots, in entries of a tableau."""
_BEGUN, _LEADING = 22, 30
"""The first linear program may take these fractions of the effort, about: for branching at all,
and for a change that leads to a good solution."""

_Winners = tuple[tuple[int, int], ...]
"""Pairs of group and the action that has to win it."""
_Branch = tuple[float, int, _Winners]
"""Its bound, its number, and who has to win."""


def is_leading(problem: RepairProblem, relaxation: Relaxed, work: float) -> bool:
    """Are there few enough cuts for branching to lead to a good solution?"""
    cuts = disjunctive_cuts(problem.take(relaxation.groups), relaxation.far)
    return _first(cuts) * _LEADING <= work * UNIT


def _first(cuts: Any) -> int:
    """What the first linear program takes, about."""
    return int(cuts.shape[0] ** 2 * len(np.unique(cuts.indices)))


def branched(
    problem: RepairProblem,
    relaxation: Relaxed,
    cost: float,
    work: float,
    stop: HardStop,
    *,
    is_cutting: bool = False,
) -> tuple[float, NDArray[np.float64]]:
    """A bound on the cost of every change, at most ``cost``, and a change (J, A).

    The change meets the demands that were looked at, at the cost of the bound: if that should be
    all of them, there is no better one.

    Args:
        cost: dearer changes are not looked for.
        work: for linear programs over groups, in units of about a second.
        is_cutting: whether cuts come in that are missed where branching leads. That takes
            time, so that fewer branches are looked at.
    """
    from scipy.sparse import vstack

    bound, point, effort = relaxation.bound, relaxation.change, int(work * UNIT)
    open_ = np.zeros(0, np.int64)
    cuts = disjunctive_cuts(problem.take(relaxation.groups), relaxation.far)
    more = cuts[:0]
    if _first(cuts) * _BEGUN > effort:
        return min(bound, cost), point
    branches: list[_Branch] = []
    is_won = True
    for search in count():
        missed = _missed(problem, point, open_)
        if (is_won and not len(missed)) or bound >= cost or effort <= 0 or stop.over():
            break
        open_ = np.union1d(open_, missed)
        is_scout = len(missed) > 0 and search < _SCOUTS
        if is_cutting and search:
            more = vstack([more, _cuts_missed(problem, point)], format="csr")
        tree = _Tree(_Contest(problem, (cuts, more), open_), cost, branches)
        effort -= tree.grow(effort, _SCOUTING if is_scout else None, stop)
        bound = max(bound, tree.bound)
        if tree.point is None:
            break
        point, is_won = tree.point, tree.is_won
        branches = [] if is_scout else tree.branches
    return min(bound, cost), point


@contextmanager
def branched_beside(
    problem: RepairProblem, relaxation: Relaxed, cost: float, work: float, stop: HardStop
) -> Iterator[Callable[[], float]]:
    """Another bound, with more cuts, on another processor; what waits for it.

    It is given up at the end of the context.
    """
    needless = _Needless(stop)
    with ThreadPoolExecutor(1) as pool:
        search = partial(branched, problem, relaxation, cost, work, needless, is_cutting=True)
        found = pool.submit(search)
        try:
            yield lambda: found.result()[0]
        finally:
            needless.is_so = True


class _Needless(HardStop):
    """The user's limit of seconds, or before, when nobody waits any more."""

    def __init__(self, stop: HardStop) -> None:
        super().__init__()
        self._stop, self.is_so = stop, False

    def over(self) -> bool:
        return self.is_so or self._stop.over()


def _missed(
    problem: RepairProblem, point: NDArray[np.float64], but: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Hard groups that a change (J, A) misses by most, few of those that are alike."""
    shortfall = np.where(problem.hard, problem.shortfall(point), 0)
    shortfall[but] = 0
    return _unlike(problem, shortfall, _WON, _MORE)


def _cuts_missed(problem: RepairProblem, point: NDArray[np.float64]) -> Any:
    """Cuts of hard groups that a change (J, A) misses by most, few of those that are alike."""
    parts = np.concatenate([np.maximum(point, 0).ravel(), np.maximum(-point, 0).ravel()])
    value, far = weakest_cuts(problem, parts)
    chosen = _unlike(problem, np.where(problem.hard, 1 - value, 0), _CUT_MISSED, _MORE_CUTS)
    return disjunctive_cuts(problem.take(chosen), far[chosen])


def _unlike(
    problem: RepairProblem, shortfall: NDArray[np.float64], least: float, count: int
) -> NDArray[np.int64]:
    """Groups with the most shortfall (G,), so many at most, and of those that are alike one."""
    most = np.argsort(-shortfall, kind="stable")[:_LOOKED_AT]
    left = most[shortfall[most] > least]
    index, value = problem.features.index, problem.features.value
    chosen: list[int] = []
    while len(left) and len(chosen) < count:
        first = left[0]
        chosen.append(int(first))
        shared = (index[left] == index[first]) & (value[left] == value[first])
        left = left[shared.mean(axis=1) < _ALIKE]
    return np.array(chosen, dtype=np.int64)


class _Contest:
    """Rows of a covering program: cuts of some groups, then comparisons that winners win.

    Args:
        cuts: rows over the parts of the change: for every program, and for where they are missed.
        open_: groups whose winners are looked at; they get cuts, too.
    """

    def __init__(
        self, problem: RepairProblem, cuts: tuple[Any, Any], open_: NDArray[np.int64]
    ) -> None:
        from scipy.sparse import vstack

        part, size = problem.take(open_), problem.features.allowed.size
        always = vstack([cuts[0], disjunctive_cuts(part)])
        self.num_always = always.shape[0]
        both: Any = vstack([always, cuts[1]], format="csr")
        self.num_cuts, self._open = both.shape[0], open_
        options = Options.of(part)
        entries = np.union1d(options.entries(), both.indices % size)
        entries = entries[problem.features.allowed.ravel()[entries]]
        comparisons, needs = options.rows(entries)
        both = vstack([both[:, np.concatenate([entries, entries + size])], comparisons])
        needs = np.concatenate([np.ones(self.num_cuts), needs])
        rows, needs, scale = scaled(both.toarray(), needs)
        useful = np.flatnonzero((rows > 0).any(axis=0))
        useful = useful[undominated(rows[:, useful])]
        self.covering = Covering(np.ascontiguousarray(rows[:, useful]), needs)
        self._scale = scale[self.num_cuts :]
        self._parts, self._entries = useful, entries
        self._shape = problem.features.allowed.shape
        self._options = np.flatnonzero(np.diff(options.option, prepend=-1))
        self._owners = np.flatnonzero(np.diff(options.group, prepend=-1))
        winners = zip(open_[options.group].tolist(), options.action.tolist(), strict=True)
        self._rows = {
            winner: self.num_cuts + np.flatnonzero(options.option == k)
            for k, winner in enumerate(winners)
        }
        self._actions = {int(g): np.flatnonzero(part.good[k]).tolist() for k, g in enumerate(open_)}

    def rows(self, winners: _Winners) -> NDArray[np.int64]:
        """What these winners have to win."""
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *(self._rows[winner] for winner in winners)])

    def actions(self, group: int) -> list[int]:
        """Who can win an open group."""
        return self._actions[group]

    def missed(self, point: NDArray[np.float64]) -> NDArray[np.int64]:
        """A few cuts, those that a point (n,) misses by most."""
        rows = slice(self.num_always, self.num_cuts)
        needs = self.covering.needs[rows]
        short = needs - np.einsum("rn,n->r", self.covering.rows[rows], point)
        most = np.argsort(-short, kind="stable")[:_AT_ONCE]
        most = most[short[most] > _CUT_MISSED * needs[most]]
        return np.asarray(self.num_always + most, dtype=np.int64)

    def change(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """The change (J, A) that a point (n,) stands for."""
        parts = np.zeros(2 * len(self._entries))
        parts[self._parts] = point
        change = np.zeros(self._shape)
        change.ravel()[self._entries] = parts[: len(self._entries)] - parts[len(self._entries) :]
        return change

    def split(self, point: NDArray[np.float64], winners: _Winners) -> int | None:
        """The open group that a point misses by most, but those that have a winner."""
        covering = self.covering
        comparisons = slice(self.num_cuts, None)
        # No BLAS, whose sums depend on the number of its threads.
        scores = np.einsum("rn,n->r", covering.rows[comparisons], point)
        spare = scores - covering.needs[comparisons]
        options = np.minimum.reduceat(spare * self._scale, self._options)
        missed = -np.maximum.reduceat(options, self._owners)
        missed[np.searchsorted(self._open, [group for group, _ in winners])] = 0
        most = int(missed.argmax())
        return int(self._open[most]) if missed[most] > _WON else None


class _Tree:
    """Branches over the winners of the open groups.

    Args:
        branches: those to go on with; none to begin anew.

    Attributes:
        point: the change that the cheapest branch leads to; None if that is not known.
        is_won: does every open group have a winner there?
    """

    def __init__(self, contest: _Contest, cost: float, branches: list[_Branch]) -> None:
        self._contest, self._cost = contest, cost
        self._root = contest.covering.solve(None, np.arange(contest.num_always))
        self._spent = self._root.work
        self.branches: list[_Branch] = branches or [(self._root.bound, 0, ())]
        self._order = count(max(number for _, number, _ in self.branches) + 1)
        self._vertices: dict[int, Vertex] = {}
        self._dearest: list[tuple[float, int]] = []
        self.point: NDArray[np.float64] | None = None
        self.is_won = False

    @property
    def bound(self) -> float:
        """The least of all branches."""
        return self.branches[0][0] * (1 - ROUNDING) if self.branches else self._cost

    def grow(self, effort: int, most: int | None, stop: HardStop) -> int:
        """Split the cheapest branch, again and again; what that took.

        It ends when all open groups are won there, at the latest after so many splits.
        """
        splits = 0
        while self.branches and self._spent < effort and not stop.over():
            bound, number, winners = self.branches[0]
            vertex = self._vertices.pop(number, None)
            if vertex is None:
                vertex = self._solved(self._root, winners)
            vertex = self._cut(vertex)
            if vertex.bound > bound:
                heapq.heappop(self.branches)
                self._keep((vertex.bound, number, winners), vertex)
                continue
            self.point = self._contest.change(vertex.point) if vertex.is_possible else None
            group = self._contest.split(vertex.point, winners) if vertex.is_possible else None
            self.is_won = group is None
            if group is None or splits == most:
                break
            heapq.heappop(self.branches)
            for action in self._contest.actions(group):
                child = self._solved(vertex, ((group, action),))
                branch = max(child.bound, bound), next(self._order), (*winners, (group, action))
                self._keep(branch, child)
            splits += 1
        return self._spent

    def _solved(self, start: Vertex, winners: _Winners) -> Vertex:
        rows = self._contest.rows(winners)
        return self._extended(start, rows)

    def _cut(self, vertex: Vertex) -> Vertex:
        """Where cuts that are missed there lead to."""
        for _ in range(_CUTTING):
            if not vertex.is_possible or vertex.bound >= self._cost:
                break
            missed = self._contest.missed(vertex.point)
            if not len(missed):
                break
            vertex = self._extended(vertex, missed)
        return vertex

    def _extended(self, start: Vertex, rows: NDArray[np.int64]) -> Vertex:
        vertex = self._contest.covering.solve(start, rows, self._cost)
        self._spent += vertex.work + _PER_PROGRAM
        return vertex

    def _keep(self, branch: _Branch, vertex: Vertex) -> None:
        """Go on from there later, unless nothing there is cheaper than what is known."""
        bound, number, _ = branch
        if bound < self._cost:
            heapq.heappush(self.branches, branch)
            self._vertices[number] = vertex
            heapq.heappush(self._dearest, (-bound, number))
            while len(self._vertices) * vertex.tableau.size > _ROOM:
                self._vertices.pop(heapq.heappop(self._dearest)[1], None)
