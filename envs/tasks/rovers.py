"""Rovers: bring samples from a map to the lander without running out of battery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from safetest_gym.envs.tasks.build import (
    Expr,
    Json,
    add,
    at_location,
    both,
    bounded,
    destination,
    edge,
    either,
    eq,
    ge,
    ite,
    le,
    model,
    mul,
    ne,
    negate,
    planning_property,
    sub,
    total,
    variable,
)
from safetest_gym.envs.tasks.checks import (
    require_between,
    require_int,
    require_plain_tuple,
    require_unique,
)
from safetest_gym.errors import ConfigError

__all__ = ["Rovers"]

Direction = Literal["down", "up", "left", "right"]
Cell = tuple[int, int]
Deposit = tuple[int, int, int]
Passage = tuple[int, int, Direction, int]

MOVES: dict[Direction, tuple[str, int]] = {
    "down": ("rover_0_y", -1),
    "up": ("rover_0_y", 1),
    "left": ("rover_0_x", -1),
    "right": ("rover_0_x", 1),
}
X, Y, BATTERY = "rover_0_x", "rover_0_y", "battery_rover_0"
ROCKS, SOIL = "rocks_on_rover_0", "soil_on_rover_0"
CHOICE, ERROR = "choice_point", "error"
CAPACITY = 5
SAMPLE_COST = IMAGE_COST = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Rovers:
    """A rover collects rocks and soil; what it carries makes driving dearer.

    The defaults are ``mars_simple``; `mars`, `mars_mini` and `mars_mini_cap` give the
    other published settings.

    Attributes:
        width: cells along x.
        height: cells along y.
        battery: most it may hold; one more is an overload.
        rocks: (x, y, how many) at first.
        soil: the same for soil.
        objectives: cells (x, y) where an image must be taken.
        carry: most a rover may carry while it moves; None: whatever it likes.
        passages: (x, y, direction, carry) for moves with a limit of their own.
        fail_charge: chance that charging has no effect.
        fail_sample: chance that taking a sample only costs battery.
        fail_image: chance that taking an image only costs battery.
    """

    width: int = 3
    height: int = 3
    battery: int = 30
    rocks: tuple[Deposit, ...] = ((2, 0, 1), (1, 1, 2))
    soil: tuple[Deposit, ...] = ((1, 1, 2), (0, 2, 1))
    objectives: tuple[Cell, ...] = ()
    carry: int | None = None
    passages: tuple[Passage, ...] = ()
    fail_charge: float = 0.0
    fail_sample: float = 0.0
    fail_image: float = 0.0

    def __post_init__(self) -> None:
        require_int("width", self.width, 1)
        require_int("height", self.height, 1)
        require_int("battery", self.battery, 1)
        for name, deposits in (("rocks", self.rocks), ("soil", self.soil)):
            self._check_places(name, deposits, 3)
            for _, _, amount in deposits:
                require_int(f"{name} on a cell", amount, 1)
            if not deposits:
                raise ConfigError(f"{name} must name a cell at least, the goal needs one of them")
        self._check_places("objectives", self.objectives, 2)
        self._check_places("passages", self.passages, 4)
        if self.carry is not None:
            require_int("carry", self.carry, 0)
        elif self.passages:
            raise ConfigError("passages need a limit elsewhere: give carry as well")
        for _, _, direction, limit in self.passages:
            if direction not in MOVES:
                raise ConfigError(
                    f"passages: unknown direction {direction!r}, use {', '.join(MOVES)}"
                )
            require_int("carry of a passage", limit, 0)
        for name in ("fail_charge", "fail_sample", "fail_image"):
            require_between(name, getattr(self, name), 0, 1)

    def _check_places(self, name: str, places: tuple[tuple[object, ...], ...], length: int) -> None:
        require_plain_tuple(name, places)
        for place in places:
            require_plain_tuple(f"an entry of {name}", place, length)
            require_int(f"x in {name}", place[0], 0, self.width - 1)
            require_int(f"y in {name}", place[1], 0, self.height - 1)
        require_unique(name, (place[: 3 if length == 4 else 2] for place in places))

    @classmethod
    def mars(cls) -> Rovers:
        """``mars``: an image as well, and limits on what may be carried while moving."""
        return cls(objectives=((2, 2),), carry=3, passages=((1, 2, "up", 2),))

    @classmethod
    def mars_mini(cls) -> Rovers:
        """``mars_mini``: ``mars_simple`` on four cells."""
        return cls(width=2, height=2, battery=10, rocks=((1, 0, 1), (1, 1, 1)), soil=((0, 1, 1),))

    @classmethod
    def mars_mini_cap(cls) -> Rovers:
        """``mars_mini_cap``: ``mars`` on four cells."""
        return cls(
            width=2,
            height=2,
            battery=10,
            rocks=((1, 0, 1), (1, 1, 1)),
            soil=((0, 1, 1),),
            objectives=((1, 1),),
            carry=1,
            passages=((1, 1, "down", 2), (0, 0, "up", 0)),
        )

    @property
    def name(self) -> str:
        """Such as ``rovers_3_3_b30_r3_s3``; image, carry limit and failures are appended."""
        rocks, soil = _amount(self.rocks), _amount(self.soil)
        parts = [f"rovers_{self.width}_{self.height}_b{self.battery}_r{rocks}_s{soil}"]
        parts += [f"i{len(self.objectives)}"] if self.objectives else []
        parts += [] if self.carry is None else [f"c{self.carry}"]
        chances = (self.fail_charge, self.fail_sample, self.fail_image)
        parts += ["f" + "-".join(f"{chance:g}" for chance in chances)] if any(chances) else []
        return "_".join(parts)

    def model(self) -> Json:
        """The JANI document, without properties."""
        return _Rules(self).model()

    def properties(self) -> list[Json]:
        """The safety property: samples spread in any way, the rover anywhere with some battery."""
        return _Rules(self).properties()


def _amount(deposits: tuple[Deposit, ...]) -> int:
    return sum(amount for _, _, amount in deposits)


def _sample(kind: str, cell: Cell) -> str:
    return f"{kind}_on_cell_x{cell[0]}_y{cell[1]}"


def _image(cell: Cell) -> str:
    return f"image_of_objective_x{cell[0]}_y{cell[1]}"


def _at(cell: Cell) -> Expr:
    return both(eq(X, cell[0]), eq(Y, cell[1]))


class _Rules:
    """The parameters and what follows from them; the lander is at (0, 0)."""

    def __init__(self, task: Rovers) -> None:
        self.task = task
        self.cells = [(x, y) for x in range(task.width) for y in range(task.height)]
        self.rocks, self.soil = _amount(task.rocks), _amount(task.soil)
        self.home = (0, 0)
        self.capped = task.carry is not None

    def model(self) -> Json:
        task = self.task
        words = ["charge", "sample", "drop_samples"]
        words += ["take_image"] if task.objectives else []
        checks = [self._checkpoint(direction) for direction in MOVES] if self.capped else []
        edges = [self._charge()]
        for direction in MOVES:
            edges += self._move(direction)
        for cell in self.cells:
            edges += [*self._take(cell), self._drop(cell)]
        edges += [self._photograph(cell) for cell in task.objectives]
        return model(
            task.name,
            actions=[f"{word}_rover_0" for word in [*words, *MOVES]],
            variables=self._variables(),
            edges=edges,
            locations=[CHOICE, ERROR, *checks] if self.capped else [CHOICE],
        )

    def _variables(self) -> list[Json]:
        task = self.task
        along_x, along_y = bounded(-1, task.width), bounded(-1, task.height)
        rocks, soil = bounded(0, self.rocks), bounded(0, self.soil)
        # Loose below, as published: nothing goes under -(rocks + soil).
        battery = bounded(-(max(CAPACITY, self.soil) + self.rocks), task.battery + 1)
        made = [
            variable(X, along_x, self.home[0]),
            variable(Y, along_y, self.home[1]),
            variable(BATTERY, battery, task.battery),
            variable(ROCKS, rocks, 0),
            variable(SOIL, soil, 0),
        ]
        if self.capped:
            made += [variable(f"{X}_n", along_x, self.home[0])]
            made += [variable(f"{Y}_n", along_y, self.home[1])]
        first_rocks = {(x, y): amount for x, y, amount in task.rocks}
        first_soil = {(x, y): amount for x, y, amount in task.soil}
        for cell in self.cells:
            made.append(variable(_sample("rocks", cell), rocks, first_rocks.get(cell, 0)))
            made.append(variable(_sample("soil", cell), soil, first_soil.get(cell, 0)))
        made += [variable(_image(cell), bounded(0, 1), 0) for cell in task.objectives]
        return made

    def properties(self) -> list[Json]:
        task = self.task
        start = both(
            self._on_map(),
            eq(ROCKS, 0),
            eq(SOIL, 0),
            eq(total(_sample("rocks", cell) for cell in self.cells), self.rocks),
            eq(total(_sample("soil", cell) for cell in self.cells), self.soil),
            *(eq(_image(cell), 0) for cell in task.objectives),
            ge(BATTERY, min(task.battery, task.width + task.height)),
            le(BATTERY, task.battery),
            *([eq(f"{X}_n", self.home[0]), eq(f"{Y}_n", self.home[1])] if self.capped else []),
        )
        goal = both(
            _at(self.home),
            ge(_sample("rocks", self.home), 1),
            ge(_sample("soil", self.home), 1),
            *(eq(_image(cell), 1) for cell in task.objectives),
            self._unharmed(),
        )
        return [
            planning_property(
                f"{task.name}-safety",
                goal=at_location(goal, CHOICE),
                failure=negate(self._unharmed()),
                start=at_location(start, CHOICE),
                goal_potential=self._potential(),
            )
        ]

    def _potential(self) -> Expr:
        rocks, soil = _sample("rocks", self.home), _sample("soil", self.home)
        safe = self._unharmed()
        terms = [
            ite(self._powered(0), 10, 0),
            ite(both(safe, _at(self.home)), 10, 0),
            ite(both(safe, ge(rocks, 1)), 10, 0),
            ite(both(safe, ge(soil, 1)), 10, 0),
            ite(safe, mul(10, add(rocks, soil)), 0),
        ]
        images = [ite(safe, mul(10, _image(cell)), 0) for cell in self.task.objectives]
        return total([*terms, *images])

    def _powered(self, least: int) -> Expr:
        return both(ge(BATTERY, least), le(BATTERY, self.task.battery))

    def _on_map(self) -> Expr:
        task = self.task
        return both(ge(X, 0), le(X, task.width - 1), ge(Y, 0), le(Y, task.height - 1))

    def _unharmed(self) -> Expr:
        return both(self._powered(0), self._on_map())

    def _do(self, word: str, guard: Expr, destinations: list[Json]) -> Json:
        return edge(f"{word}_rover_0", guard, destinations, CHOICE)

    def _chances(self, effects: dict[str, Expr], spent: dict[str, Expr], fail: float) -> list[Json]:
        """Success, and with chance ``fail`` only what the attempt costs."""
        if not fail:
            return [destination(effects, location=CHOICE)]
        return [
            destination(effects, 1 - fail, location=CHOICE),
            destination(spent, fail, location=CHOICE),
        ]

    def _charge(self) -> Json:
        guard = both(_at(self.home), self._powered(0))
        effects: dict[str, Expr] = {BATTERY: add(BATTERY, 1)}
        return self._do("charge", guard, self._chances(effects, {}, self.task.fail_charge))

    def _checkpoint(self, direction: Direction) -> str:
        return f"check_move_{direction}_rover_0"

    def _move(self, direction: Direction) -> Iterator[Json]:
        """With a carry limit the move pauses at a location that checks it with silent edges."""
        axis, step = MOVES[direction]
        guard = both(self._powered(1), self._on_map())
        paid = sub(BATTERY, add(1, add(ROCKS, SOIL)))
        target = f"{axis}_n" if self.capped else axis
        check = self._checkpoint(direction)
        moved: dict[str, Expr] = {target: add(axis, step), BATTERY: paid}
        there = check if self.capped else CHOICE
        yield self._do(direction, guard, [destination(moved, location=there)])
        if self.capped:
            heavy = self._overloaded(direction)
            yield edge(None, heavy, [destination({BATTERY: -1}, location=ERROR)], check)
            arrived = destination({axis: target}, location=CHOICE)
            yield edge(None, negate(heavy), [arrived], check)

    def _overloaded(self, direction: Direction) -> Expr:
        carried = add(ROCKS, SOIL)
        special = [(x, y, limit) for x, y, way, limit in self.task.passages if way == direction]
        elsewhere = [either(ne(X, x), ne(Y, y)) for x, y, _ in special]
        cases = [both(_at((x, y)), ge(carried, limit + 1)) for x, y, limit in special]
        return either(*cases, both(ge(carried, (self.task.carry or 0) + 1), *elsewhere))

    def _take(self, cell: Cell) -> Iterator[Json]:
        """A rock, some soil, or one of each: the choice among them is free."""
        paid: dict[str, Expr] = {BATTERY: sub(BATTERY, SAMPLE_COST)}
        rock, soil = _sample("rocks", cell), _sample("soil", cell)
        one_rock: dict[str, Expr] = {rock: sub(rock, 1), ROCKS: add(ROCKS, 1)}
        one_soil: dict[str, Expr] = {soil: sub(soil, 1), SOIL: add(SOIL, 1)}
        options: list[tuple[list[Expr], dict[str, Expr]]] = [
            ([ge(rock, 1)], one_rock),
            ([ge(soil, 1)], one_soil),
            ([ge(rock, 1), ge(soil, 1)], one_rock | one_soil),
        ]
        for found, taken in options:
            guard = both(self._powered(1), _at(cell), *found)
            outcomes = self._chances(taken | paid, paid, self.task.fail_sample)
            yield self._do("sample", guard, outcomes)

    def _drop(self, cell: Cell) -> Json:
        rock, soil = _sample("rocks", cell), _sample("soil", cell)
        guard = both(self._powered(1), _at(cell), ge(add(ROCKS, SOIL), 1))
        effects: dict[str, Expr] = {
            rock: add(rock, ROCKS),
            soil: add(soil, SOIL),
            ROCKS: 0,
            SOIL: 0,
        }
        return self._do("drop_samples", guard, [destination(effects, location=CHOICE)])

    def _photograph(self, cell: Cell) -> Json:
        paid: dict[str, Expr] = {BATTERY: sub(BATTERY, IMAGE_COST)}
        outcomes = self._chances({_image(cell): 1} | paid, paid, self.task.fail_image)
        return self._do("take_image", both(self._powered(1), _at(cell)), outcomes)
