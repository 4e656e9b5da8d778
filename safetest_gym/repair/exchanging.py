"""Better solutions of a repair: one group after another tries another winner.

With all winners chosen the least change is a linear program in which a hundred or two groups
decide. Each of them is taken out, every other good action of it is put in, and what is missed
then gets the winner that is nearest; nearly all tries end at once, as they have become too
dear. Taking out one group at a time costs little by halves: to the rest of the program one
half of the groups is added, then, beginning with the rest again, the other half, and so on.

Where no exchange helps, a few groups that share features are given other winners by force,
more of them lose theirs, and the exchanges begin again. Two such searches run beside each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.covering import UNIT, Covering, Vertex, undominated
from safetest_gym.repair.options import Options, scaled
from safetest_gym.repair.problem import RepairProblem
from safetest_gym.repair.stop import HardStop

__all__ = ["exchanged"]

_SEARCHES = 2
"""One on each of two processors."""
_SEED = 30
"""Of the first search; the others have the next ones."""
_EFFORT, _USUAL = 2.7, 6.0
"""Work of a search, times what could be gained, where all together have the usual work; in
proportion where they have more."""
_PER_PROGRAM = 1_800_000
"""What a linear program takes besides its pivots, in entries of a tableau."""
_PER_OPTION = 200_000
"""What rows of another group take."""
_BEGUN = 10
"""A linear program may take this fraction of the effort, about."""
_NO_ROOM = 0.05
"""Share of the effort that a program counts which is too large."""
_NEAREST, _ROWS, _NUMBERS = 300, 3000, 12_000_000
"""Groups whose features are looked at, those that a solution meets most narrowly; their
comparisons, and the numbers in these, at most."""
_NEARER = 3000
"""Groups that are looked at before all others are."""
_OTHERS = 3000
"""Rows of other groups that there is room for."""
_TIGHT = 1e-6
"""A group that is met by no more than this is met narrowly."""
_MISSED = 1e-6
_ADDED = 60
"""Groups that are added at a time, those that are missed by most."""
_GAIN, _LAST_GAIN = 1e-2, 1e-3
"""What an exchange has to gain, and at last."""
_LAST = 0.75
"""From this share of the effort on it is the last search, from the best solution."""
_TRIED = 30
"""Groups that are tried, those with the highest prices; at last all are."""
_FORCED, _FREED = 0.1, 0.7
"""Groups that get other winners by force, and that lose theirs, at most."""
_WORSE = 1.6
"""What that may lead to, as a multiple of the best cost."""
_SLICE, _FAR = 0.1, 1.03
"""After this share of the effort it is given up if it still costs so many times the best."""

_Winners = dict[int, int]
"""Groups and the actions that win them."""


def exchanged(
    problem: RepairProblem,
    best: NDArray[np.float64],
    enough: float,
    work: float,
    stop: HardStop,
) -> NDArray[np.float64]:
    """The best solution that is found from a known one, both changes (J, A).

    Args:
        enough: the cost to stop at.
        work: of all searches together.
    """
    if problem.cost(best) <= enough or stop.over() or _is_large(problem, best):
        return best
    gain = 1 - enough / problem.cost(best)
    effort = min(_EFFORT * max(1.0, work / _USUAL) * gain, work / _SEARCHES)
    search = partial(_searched, problem, best, (enough, effort), stop)
    with ThreadPoolExecutor(_SEARCHES) as pool:
        return min([best, *pool.map(search, range(_SEARCHES))], key=problem.cost)


def _is_large(problem: RepairProblem, best: NDArray[np.float64]) -> bool:
    """Are there too many comparisons near a solution, as with many good and bad actions?"""
    nearest = np.argsort(-problem.shortfall(best), kind="stable")[:_NEAREST]
    count = problem.good[nearest].sum(axis=1) * problem.bad[nearest].sum(axis=1)
    return bool(count.sum() > _ROWS)


def _searched(
    problem: RepairProblem,
    best: NDArray[np.float64],
    limits: tuple[float, float],
    stop: HardStop,
    seed: int,
) -> NDArray[np.float64]:
    return _Search(problem, best, limits, seed, stop).run()


class _Comparisons:
    """Comparisons as dense rows over the entries that some groups and a solution use.

    Args:
        groups: the first of them, as many as there is room for.

    Attributes:
        groups: those that all good actions are known of.
        added: how many others have come in.
    """

    def __init__(
        self, problem: RepairProblem, groups: NDArray[np.int64], change: NDArray[np.float64]
    ) -> None:
        self._problem = problem
        while True:
            self.groups = np.sort(groups)
            options = Options.of(problem.take(self.groups))
            self._entries = np.union1d(options.entries(), np.flatnonzero(change))
            sparse, needs = options.rows(self._entries)
            if len(groups) == 1 or sparse.shape[0] * sparse.shape[1] <= _NUMBERS:
                break
            groups = groups[: len(groups) // 2]
        rows, needs, _ = scaled(sparse.toarray(), needs)
        useful = np.flatnonzero((rows > 0).any(axis=0))
        useful = useful[undominated(rows[:, useful])]
        now = change.ravel()[self._entries]
        used = np.flatnonzero(np.concatenate([now > 0, now < 0]))
        self._useful = np.union1d(useful, used)
        self._first, self._width = rows.shape
        self._count, self.added = self._first, 0
        room = np.zeros((self._first + _OTHERS, len(self._useful)))
        room[: self._first] = rows[:, self._useful]
        self.covering = Covering(room, np.concatenate([needs, np.zeros(_OTHERS)]))
        self._owner: list[int] = []
        self._rows: dict[tuple[int, int], list[int]] = {}
        self._note(options, self.groups)

    def _note(self, options: Options, groups: NDArray[np.int64]) -> None:
        """Where the rows of these options are, the last ones."""
        owners, first = groups[options.owner].tolist(), len(self._owner)
        actions = options.action[options.option].tolist()
        self._owner += owners
        for row, winner in enumerate(zip(owners, actions, strict=True), start=first):
            self._rows.setdefault(winner, []).append(row)

    def forget(self) -> None:
        """Drop the rows of other groups if there is little room left."""
        if self._count > self._first + _OTHERS // 2:
            self._rows = {k: rows for k, rows in self._rows.items() if rows[0] < self._first}
            self._count = self._first
            del self._owner[self._first :]

    def rows(self, winners: Iterable[tuple[int, int]]) -> NDArray[np.int64] | None:
        """What these groups' winners have to win; None without room for it."""
        winners = list(winners)
        if not self._add([winner for winner in winners if winner not in self._rows]):
            return None
        return np.array([row for winner in winners for row in self._rows[winner]], np.int64)

    def _add(self, winners: list[tuple[int, int]]) -> bool:
        """Write the rows of other groups; False without room for them."""
        if not winners:
            return True
        groups, actions = np.array(winners, np.int64).T
        part = self._problem.take(groups)
        options = Options.of(replace(part, good=np.arange(part.num_actions) == actions[:, None]))
        last = self._count + len(options.bad)
        covering = self.covering
        if last > len(covering.rows):
            return False
        sparse, needs = options.rows(self._entries)
        rows = np.zeros((len(needs), self._width))
        rows[:, : sparse.shape[1]] = sparse.toarray()
        rows, needs, _ = scaled(rows[:, self._useful], needs)
        covering.rows[self._count : last], covering.needs[self._count : last] = rows, needs
        self._count = last
        self.added += len(winners)
        self._note(options, groups)
        return True

    def change(self, vertex: Vertex) -> NDArray[np.float64]:
        """The change (J, A) that a vertex stands for."""
        width, parts = len(self._entries), np.zeros(self._width)
        parts[self._useful] = vertex.point
        change = np.zeros(self._problem.features.allowed.shape)
        change.ravel()[self._entries] = parts[:width] - parts[width : 2 * width]
        return change

    def dear(self, vertex: Vertex) -> list[int]:
        """The groups that have a price there, the highest first."""
        free, needs = vertex.free, self.covering.needs
        own = np.flatnonzero(free >= len(free))
        prices: dict[int, float] = {}
        rows = free[own] - len(free)
        for row, price in zip(rows.tolist(), vertex.tableau[0, own] * needs[rows], strict=True):
            group = self._owner[row]
            prices[group] = prices.get(group, 0.0) + float(price)
        return sorted((g for g in prices if prices[g] > _TIGHT), key=lambda g: (-prices[g], g))


class _Search:
    """Exchanges, begun again and again.

    Args:
        limits: the cost to stop at, and work.
    """

    def __init__(
        self,
        problem: RepairProblem,
        best: NDArray[np.float64],
        limits: tuple[float, float],
        seed: int,
        stop: HardStop,
    ) -> None:
        self._problem, self._stop = problem, stop
        self._enough, self._effort = limits[0], limits[1] * UNIT
        self._rng = np.random.default_rng(_SEED + seed)
        spare = -problem.shortfall(best)
        nearest = np.argsort(spare, kind="stable")
        self._table = _Comparisons(problem, nearest[:_NEAREST], best)
        self._known = problem.hard.copy()
        self._known[self._table.groups] = True
        self._nearer = np.sort(nearest[:_NEARER])
        self._near = problem.take(self._nearer)
        self._begins = seed == 0
        self._gain, self._spent = _GAIN, 0
        self._change, self._cost = best, problem.cost(best)
        self._winners: _Winners = {}
        self._take_over(best)

    def run(self) -> NDArray[np.float64]:
        """The best solution, a change (J, A)."""
        self._tighten()
        if self._begins:
            self._improve()
        best = self._change, self._cost, self._winners
        while self._goes_on(_LAST) and best[1] > self._enough:
            if self._kick():
                self._improve(best[1])
            if self._cost < best[1]:
                best = self._change, self._cost, self._winners
            self._change, self._cost, self._winners = best
        self._gain = _LAST_GAIN
        self._improve()
        return self._change

    def _tighten(self) -> None:
        """The least cost with the winners of the solution, which can hold together."""
        known = self._problem.best_good(self._problem.features.scores(self._change))
        cutoff = self._cost * (1 - _LAST_GAIN)
        vertex = self._solve(None, self._winners.items(), cutoff)
        change = self._completed(vertex, dict(self._winners), cutoff, known)
        if change is not None:
            self._take_over(change)

    def _goes_on(self, share: float = 1.0) -> bool:
        return self._spent < share * self._effort and not self._stop.over()

    def _take_over(self, change: NDArray[np.float64]) -> None:
        """Who wins the groups that a solution meets narrowly."""
        short = np.where(self._known, self._problem.shortfall(change), -np.inf)
        tight = np.flatnonzero(short > -_TIGHT)
        choice = self._problem.best_good(self._problem.features.scores(change))
        self._change, self._cost = change, self._problem.cost(change)
        self._winners = dict(zip(tight.tolist(), choice[tight].tolist(), strict=True))

    def _solve(
        self, start: Vertex | None, winners: Iterable[tuple[int, int]], cutoff: float = np.inf
    ) -> Vertex | None:
        """The least cost with some more winners; None without a point below the cutoff."""
        before = self._table.added
        rows = self._table.rows(winners)
        self._spent += _PER_PROGRAM + _PER_OPTION * (self._table.added - before)
        size = 0 if rows is None else len(rows) + (0 if start is None else len(start.tableau))
        width = self._table.covering.rows.shape[1]
        if rows is None or size**2 * width * _BEGUN > self._effort:
            self._spent += int(_NO_ROOM * self._effort)
            return None
        vertex = self._table.covering.solve(start, rows, cutoff)
        self._spent += vertex.work
        return vertex if vertex.is_possible and vertex.bound < cutoff else None

    def _completed(
        self,
        vertex: Vertex | None,
        winners: _Winners,
        cutoff: float,
        known: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64] | None:
        """A solution; what is missed on the way gets its known winner, or the nearest one."""
        while vertex is not None and self._goes_on():
            change = self._table.change(vertex)
            missed = self._missed(change)
            if not missed:
                return change if self._problem.cost(change) < cutoff else None
            if any(group in winners for group, _ in missed):
                return None
            if known is not None:
                missed = [(group, int(known[group])) for group, _ in missed]
            winners.update(missed)
            vertex = self._solve(vertex, missed, cutoff)
        return None

    def _missed(self, change: NDArray[np.float64]) -> list[tuple[int, int]]:
        """Hard groups that are missed by most, and who wins them most easily."""
        for part, numbers in ((self._near, self._nearer), (self._problem, None)):
            short = np.where(part.hard, part.shortfall(change), -np.inf)
            self._spent += 2 * part.features.index.size * part.num_actions
            missed = np.flatnonzero(short > _MISSED)
            if len(missed):
                missed = missed[np.argsort(-short[missed], kind="stable")[:_ADDED]]
                groups = missed if numbers is None else numbers[missed]
                nearest = part.take(missed)
                choice = nearest.best_good(nearest.features.scores(change))
                return list(zip(groups.tolist(), choice.tolist(), strict=True))
        return []

    def _improve(self, best: float = np.inf) -> None:
        """Exchange winners until that no longer helps, or stays far from the best cost."""
        is_better, begun = True, self._spent
        while is_better and self._goes_on():
            is_better = False
            vertex = self._solve(None, self._winners.items())
            if vertex is None:
                return
            todo = self._table.dear(vertex)[: _TRIED if self._gain == _GAIN else None]
            winners = dict(self._winners)
            change = self._completed(vertex, winners, self._cost * (1 - _TIGHT))
            if change is not None:
                self._take_over(change)
            while todo and self._goes_on():
                if self._spent - begun > _SLICE * self._effort and self._cost > _FAR * best:
                    return
                todo = [group for group in todo if group in self._winners]
                others = set(self._winners).difference(todo)
                base = self._solve(None, [(g, self._winners[g]) for g in sorted(others)])
                done = self._exchange(todo, base) if todo and base is not None else None
                if done is None:
                    break
                is_better = True
                todo = todo[todo.index(done) + 1 :]

    def _exchange(self, groups: Sequence[int], base: Vertex) -> int | None:
        """The first of the groups for which another winner is better, which it gets.

        Args:
            base: with all winners but those of these groups.
        """
        cutoff = self._cost * (1 - self._gain)
        if base.bound >= cutoff or not self._goes_on():
            return None
        if len(groups) == 1:
            return groups[0] if self._replaced(groups[0], base, cutoff) else None
        middle = len(groups) // 2
        for part, rest in ((groups[:middle], groups[middle:]), (groups[middle:], groups[:middle])):
            start = self._solve(base, [(g, self._winners[g]) for g in rest], cutoff)
            done = None if start is None else self._exchange(part, start)
            if done is not None:
                return done
        return None

    def _replaced(self, group: int, base: Vertex, cutoff: float) -> bool:
        for action in np.flatnonzero(self._problem.good[group]).tolist():
            if action != self._winners[group]:
                winners = {**self._winners, group: action}
                vertex = self._solve(base, [(group, action)], cutoff)
                change = self._completed(vertex, winners, cutoff)
                if change is not None:
                    self._take_over(change)
                    return True
        return False

    def _kick(self) -> bool:
        """Go elsewhere, if that is possible and not too dear."""
        limit = self._cost * _WORSE
        self._table.forget()
        winners = self._forced()
        vertex = self._solve(None, winners.items(), limit)
        change = self._completed(vertex, winners, limit)
        if change is not None:
            self._take_over(change)
        return change is not None

    def _forced(self) -> _Winners:
        """Some groups that share features get other winners by force, more lose theirs."""
        problem, rng = self._problem, self._rng
        held = [group for group in self._winners if problem.good[group].sum() > 1]
        if not held:
            return {}
        index = problem.features.index[held]
        shared = (index == index[rng.integers(len(held))]).sum(axis=1)
        order = np.lexsort((rng.random(len(held)), -shared))
        forced = max(round(_FORCED * len(held)), 1)
        gone = [held[k] for k in order[: forced + round(_FREED * len(held) * rng.random())]]
        winners = {g: action for g, action in self._winners.items() if g not in gone}
        for group in gone[:forced]:
            good = problem.good[group].copy()
            good[self._winners[group]] = False
            winners[group] = int(rng.choice(np.flatnonzero(good)))
        return winners
