"""Flappy bird: fly up and down through the openings of walls, round and round."""

from __future__ import annotations

from dataclasses import dataclass

from safetest_gym.envs.tasks.build import (
    Expr,
    Json,
    add,
    both,
    bounded,
    destination,
    edge,
    either,
    eq,
    ge,
    le,
    model,
    planning_property,
    sub,
    variable,
)
from safetest_gym.envs.tasks.checks import (
    require_between,
    require_int,
    require_plain_tuple,
    require_unique,
)
from safetest_gym.errors import ConfigError

__all__ = ["FlappyBird"]

Wall = tuple[int, int, int]

USUAL_OPENING = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class FlappyBird:
    """A bird moves one row up or down at a time; chance decides whether it also moves right.

    Attributes:
        width: columns; to the right of the last one the bird is back in the first.
        height: rows.
        walls: (column, lowest free row, free rows); None: regular walls that can be
            passed from every start.
        skip: the bird can also keep its row.
        probability: chance that a move also goes right.
    """

    width: int = 20
    height: int = 10
    walls: tuple[Wall, ...] | None = None
    skip: bool = False
    probability: float = 0.5

    def __post_init__(self) -> None:
        require_int("width", self.width, 2)
        require_int("height", self.height, 2)
        require_between("probability", self.probability, 0, 1)
        if not isinstance(self.skip, bool):
            raise ConfigError(f"skip must be True or False, got {self.skip!r}")
        if self.walls is None:
            return
        require_plain_tuple("walls", self.walls)
        for wall in self.walls:
            require_plain_tuple("an entry of walls", wall, 3)
            column, lowest, rows = wall
            require_int("column of a wall", column, 1, self.width - 1)
            require_int("lowest free row of a wall", lowest, 0, self.height - 1)
            require_int("free rows of a wall", rows, 1, self.height - lowest)
        require_unique("walls", (wall[0] for wall in self.walls))

    @property
    def name(self) -> str:
        """Such as ``flappy_bird_20_10``; own walls are appended as column-lowest-rows."""
        parts = [f"flappy_bird_{self.width}_{self.height}"]
        parts += ["skip"] if self.skip else []
        parts += [] if self.probability == 0.5 else [f"p{self.probability:g}"]
        parts += ["-".join(map(str, wall)) for wall in self.walls or ()]
        parts += ["free"] if self.walls == () else []
        return "_".join(parts)

    @property
    def scenery(self) -> Json:
        """What a picture shows besides the state: the walls that are really there."""
        return {"walls": self._standing()}

    def model(self) -> Json:
        """The JANI document, without properties."""
        rows: dict[str, tuple[Expr, Expr]] = {
            "up": (le("bird_y", self.height - 2), add("bird_y", 1)),
            "down": (ge("bird_y", 1), sub("bird_y", 1)),
        }
        if self.skip:
            rows["skip"] = (True, "bird_y")
        inside: tuple[Expr, Expr] = le("bird_x", self.width - 2), add("bird_x", 1)
        around: tuple[Expr, Expr] = ge("bird_x", self.width - 1), 0
        edges = [
            self._move(action, both(here, possible), row, column)
            for action, (possible, row) in rows.items()
            for here, column in (inside, around)
        ]
        return model(
            self.name,
            actions=list(rows),
            variables=(
                variable("bird_x", bounded(0, self.width - 1), 0),
                variable("bird_y", bounded(0, self.height - 1), self.height // 2),
            ),
            edges=edges,
        )

    def properties(self) -> list[Json]:
        """The safety property: start in the first column, never meet a wall; there is no goal."""
        hits = [
            both(eq("bird_x", column), either(*_blocked(self.height, lowest, rows)))
            for column, lowest, rows in self._standing()
            if rows < self.height
        ]
        return [
            planning_property(
                f"{self.name}-safety",
                goal=False,
                failure=either(*hits),
                start=eq("bird_x", 0),
            )
        ]

    def _standing(self) -> tuple[Wall, ...]:
        return _regular_walls(self.width, self.height) if self.walls is None else self.walls

    def _move(self, action: str, guard: Expr, row: Expr, column: Expr) -> Json:
        """The row always changes; the column changes by chance."""
        rows: dict[str, Expr] = {} if row == "bird_y" else {"bird_y": row}
        outcomes = [
            destination(rows, 1 - self.probability),
            destination({**rows, "bird_x": column}, self.probability),
        ]
        return edge(action, guard, outcomes)


def _blocked(height: int, lowest: int, rows: int) -> list[Expr]:
    below = [le("bird_y", lowest - 1)] if lowest else []
    return below + ([ge("bird_y", lowest + rows)] if lowest + rows < height else [])


def _regular_walls(width: int, height: int) -> tuple[Wall, ...]:
    """Openings in the middle first, then by turns above and below it.

    Walls are so far apart that a bird which is carried right with every move still gets
    from the border to the middle, and from one opening to the next.
    """
    opening = min(USUAL_OPENING, max(2, height - 1))
    apart = max(USUAL_OPENING, (height + 1) // 2)
    middle = (height - opening) // 2
    shift = min((apart - 1) // 2, middle)
    lowest = [middle, middle + shift, middle - shift]
    columns = range(apart, width, apart)
    order = [0, *(1 + index % 2 for index in range(len(columns) - 1))]
    return tuple(
        (column, lowest[which], opening) for column, which in zip(columns, order, strict=False)
    )
