"""The sliding puzzle with tiles that stick, and cells that some tiles must not enter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Literal

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.checks import (
    require_between,
    require_int,
    require_plain_tuple,
    with_tuples,
)
from safetest_gym.errors import ConfigError

__all__ = ["NPuzzle"]

_BLANK = "blank"
_STEP_COST = "step_cost"
_FAILS = "failing_probability"
_BOUND = "item_cost_bound"
_ACTIONS = ("slide_left", "slide_right", "slide_up", "slide_down")


@dataclass(frozen=True, kw_only=True, slots=True)
class NPuzzle:
    """N-puzzle: order the tiles, the blank last, without a tile on a forbidden cell.

    Cells count from 0, row by row; tile t belongs on cell t - 1.

    Attributes:
        width: cells in a row.
        height: rows.
        cost_bound: a tile whose moves failed so often cannot be moved any more;
            None for a model without costs.
        variant: what the policy sees: ``aware`` the tiles' costs, ``ignoring`` not.
        forbidden: pairs (tile, cell) that are failures; None for the first tile on the
            last cell and the last tile on the first cell.
        failing_probability: of a move that changes nothing but costs.
        starts: how many random boards the first property starts from; fewer if there are
            fewer.
        seed: of their choice.
    """

    width: int = 3
    height: int = 3
    cost_bound: int | None = 8
    variant: Literal["aware", "ignoring"] = "aware"
    forbidden: tuple[tuple[int, int], ...] | None = None
    failing_probability: float = 0.5
    starts: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        require_int("width", self.width, 2)
        require_int("height", self.height, 2)
        require_int("starts", self.starts, 1)
        require_int("seed", self.seed, 0)
        if self.cost_bound is not None:
            require_int("cost_bound", self.cost_bound, 1)
        if self.variant not in ("aware", "ignoring"):
            raise ConfigError(f"variant must be 'aware' or 'ignoring', got {self.variant!r}")
        require_between("failing_probability", self.failing_probability, 0, 1)
        if self.forbidden is not None:
            object.__setattr__(self, "forbidden", with_tuples(self.forbidden))
            require_plain_tuple("forbidden", self.forbidden)
            for pair in self.forbidden:
                require_plain_tuple("an entry of forbidden", pair, 2)
        for tile, cell in self._forbidden:
            if tile not in self._tiles or cell not in range(self._cells) or tile == cell + 1:
                raise ConfigError(
                    f"forbidden must pair tiles 1..{self._cells - 1} with cells "
                    f"0..{self._cells - 1} other than their own, got {(tile, cell)}"
                )

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        cost = "nocost" if self.cost_bound is None else f"bound{self.cost_bound}"
        parts = ["n_puzzle", self.width, self.height, cost]
        parts += ["ignoring"] if self.variant == "ignoring" else []
        if self.forbidden is not None:
            parts += ["not", *(f"{tile}at{cell}" for tile, cell in self.forbidden)]
        if self.failing_probability != 0.5:
            parts.append(f"p{self.failing_probability:g}")
        return "_".join(map(str, parts))

    @property
    def observed(self) -> tuple[str, ...] | None:
        """Variables that the policy sees; None for all."""
        if self.cost_bound is None:
            return None
        hidden = {_STEP_COST}
        if self.variant == "ignoring":
            hidden |= {_cost(tile) for tile in self._tiles}
        return tuple(v["name"] for v in self._variables() if v["name"] not in hidden)

    def model(self) -> Json:
        """The JANI document, without properties."""
        constants: dict[str, int | float | bool] = {_FAILS: float(self.failing_probability)}
        if self.cost_bound is not None:
            constants[_BOUND] = self.cost_bound
        return build.model(
            self.name,
            actions=_ACTIONS,
            variables=self._variables(),
            edges=list(self._moves()),
            constants=constants,
        )

    def properties(self) -> list[Json]:
        """Two planning properties: random boards as starts, then all boards by a condition.

        Counting the boards of the condition is hard for tools beyond 2 by 3 cells.
        """
        home = [build.eq(_at(tile), tile - 1) for tile in self._tiles]
        reward = None if self.cost_bound is None else build.mul(-0.01, _STEP_COST)
        return [
            build.planning_property(
                f"{self.name}-{kind}",
                goal=build.both(*home),
                failure=self._failure(),
                start=start,
                goal_potential=build.total(build.ite(placed, 10, 0) for placed in home),
                step_reward=reward,
            )
            for kind, start in (("starts", self._boards()), ("all_starts", self._start()))
        ]

    @property
    def _cells(self) -> int:
        return self.width * self.height

    @property
    def _tiles(self) -> range:
        return range(1, self._cells)

    @property
    def scenery(self) -> Json:
        """What a picture shows besides the state: the cells that are really forbidden."""
        return {"forbidden": self._forbidden}

    @property
    def _forbidden(self) -> tuple[tuple[int, int], ...]:
        last = self._cells - 1
        return ((1, last), (last, 0)) if self.forbidden is None else self.forbidden

    def _variables(self) -> list[Json]:
        """Initially every tile is two cells ahead of its own, the blank at home."""
        cell, tiles = build.bounded(0, self._cells - 1), len(self._tiles)
        declared = [
            build.variable(_BLANK, cell, self._cells - 1),
            *(build.variable(_at(t), cell, (t + 1) % tiles) for t in self._tiles),
        ]
        if self.cost_bound is not None:
            cost = build.bounded(0, _BOUND)
            declared += [build.variable(_cost(tile), cost, 0) for tile in self._tiles]
            declared.append(build.variable(_STEP_COST, cost, 0))
        return declared

    def _moves(self) -> Iterator[Json]:
        """Per cell of the blank and direction, one edge per tile that may stand there."""
        for blank in range(self._cells):
            row, column = divmod(blank, self.width)
            sources = (
                (column < self.width - 1, blank + 1),
                (column > 0, blank - 1),
                (row < self.height - 1, blank + self.width),
                (row > 0, blank - self.width),
            )
            for action, (exists, source) in zip(_ACTIONS, sources, strict=True):
                if exists:
                    for tile in self._tiles:
                        yield self._move(action, tile, source, blank)

    def _move(self, action: str, tile: int, source: int, blank: int) -> Json:
        guard = build.both(build.eq(_BLANK, blank), build.eq(_at(tile), source))
        moved: dict[str, Expr] = {_BLANK: source, _at(tile): blank}
        stuck: dict[str, Expr] = {}
        if self.cost_bound is not None:
            cost = _cost(tile)
            guard = build.both(guard, build.le(cost, build.sub(_BOUND, 1)))
            moved[_STEP_COST] = cost
            stuck = {_STEP_COST: cost, cost: build.add(cost, 1)}
        works = build.destination(moved, build.sub(1, _FAILS))
        return build.edge(action, guard, [works, build.destination(stuck, _FAILS)])

    def _failure(self) -> Expr:
        return build.either(*(build.eq(_at(tile), cell) for tile, cell in self._forbidden))

    def _boards(self) -> list[dict[str, int]]:
        """Random solvable boards that do not fail, without duplicates; nothing spent."""
        rng = random.Random(self.seed)
        places = [*map(_at, self._tiles), _BLANK]
        found: dict[tuple[int, ...], dict[str, int]] = {}
        misses = 0
        while len(found) < self.starts and misses < max(self.starts, 1000):
            cells = list(range(self._cells))
            rng.shuffle(cells)
            if not self._solvable(cells):
                cells[:2] = cells[1], cells[0]
            bad = any(cells[tile - 1] == cell for tile, cell in self._forbidden)
            misses = misses + 1 if bad or tuple(cells) in found else 0
            if not misses:
                found[tuple(cells)] = dict(zip(places, cells, strict=True))
        if not found:
            raise ConfigError(f"no start board found, forbidden leaves too few: {self._forbidden}")
        return list(found.values())

    def _solvable(self, cells: Sequence[int]) -> bool:
        """Whether sliding orders the board: parity of its cycles and the blank's way home."""
        seen: set[int] = set()
        swaps = self._cells
        for item in range(self._cells):
            swaps -= item not in seen
            while item not in seen:
                seen.add(item)
                item = cells[item]
        row, column = divmod(cells[-1], self.width)
        return (swaps + self.height - 1 - row + self.width - 1 - column) % 2 == 0

    def _start(self) -> Expr:
        """Every board from which the goal can be reached by sliding, nothing spent."""
        places = [_BLANK, *(_at(tile) for tile in self._tiles)]
        spent = [] if self.cost_bound is None else [*map(_cost, self._tiles), _STEP_COST]
        return build.both(
            *(build.ne(one, other) for one, other in combinations(places, 2)),
            *(build.ne(_at(tile), cell) for tile, cell in self._forbidden),
            build.negate(self._odd()),
            *(build.eq(cost, 0) for cost in spent),
        )

    def _odd(self) -> Expr:
        """True exactly on the unsolvable boards: parity of inversions, and rows if need be.

        Written as a chain of exclusive ors, which SMT solvers take better than a remainder.
        """
        terms = [build.gt(_at(a), _at(b)) for a, b in combinations(self._tiles, 2)]
        if self.width % 2 == 0:
            rows = (row for row in range(self.height) if (self.height - 1 - row) % 2)
            inside = (
                build.both(
                    build.ge(_BLANK, row * self.width),
                    build.le(_BLANK, (row + 1) * self.width - 1),
                )
                for row in rows
            )
            terms.append(build.either(*inside))
        return reduce(build.ne, terms)


def _at(tile: int) -> str:
    return f"tile_{tile}"


def _cost(tile: int) -> str:
    return f"cost_tile_{tile}"
