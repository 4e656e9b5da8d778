"""Flight diversion: fly an aeroplane through a box of air to a place to land."""

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
    gt,
    le,
    model,
    planning_property,
    sub,
    variable,
)
from safetest_gym.envs.tasks.checks import require_between, require_int, require_plain_tuple
from safetest_gym.errors import ConfigError

__all__ = ["FlightDiversion"]

AXES = ("x", "y", "z")
LIMIT = 1e6

Range = tuple[float, float]
Box = tuple[Range, Range, Range]


@dataclass(frozen=True, kw_only=True, slots=True)
class FlightDiversion:
    """An aeroplane changes its velocity by one along one axis per unit of fuel.

    A box is a (lower, upper) range each for x, y and z, its faces included.

    Attributes:
        box: the air space.
        danger: boxes in which the aeroplane fails.
        goals: boxes it shall reach.
        fuel: decisions until the tank is empty, which is a failure.
        speed: the most along each axis.
        oob_crash: crash at the border of the box instead of staying where it is.
    """

    box: Box = ((-5, 5), (-5, 5), (-5, 5))
    danger: tuple[Box, ...] = (((3, 4), (4, 5), (-3, -2)),)
    goals: tuple[Box, ...] = (((1, 2), (-2, 1), (-5, -3)),)
    fuel: int = 7
    speed: int = 3
    oob_crash: bool = False

    def __post_init__(self) -> None:
        require_int("fuel", self.fuel, 1)
        require_int("speed", self.speed, 1)
        require_plain_tuple("danger", self.danger)
        require_plain_tuple("goals", self.goals)
        _require_box("box", self.box)
        for index, box in enumerate(self.danger):
            _require_box(f"danger[{index}]", box)
        for index, box in enumerate(self.goals):
            _require_box(f"goals[{index}]", box)

    @property
    def name(self) -> str:
        """Such as ``flight_diversion_5_5``: half the box's extent along x and along z."""
        x, _, z = ((upper - lower) / 2 for lower, upper in self.box)
        parts = [f"flight_diversion_{x:g}_{z:g}"]
        parts += [f"fuel{self.fuel}"] if self.fuel != 7 else []
        parts += [f"speed{self.speed}"] if self.speed != 3 else []
        parts += ["crash"] if self.oob_crash else []
        return "_".join(parts)

    def model(self) -> Json:
        """The JANI document, without properties."""
        variables = [
            variable(f"pos_{axis}", bounded(lower, upper, "real"), (lower + upper) / 2)
            for axis, (lower, upper) in zip(AXES, self.box, strict=True)
        ]
        variables += [
            variable(f"vel_{axis}", bounded(-self.speed, self.speed, "real"), 0) for axis in AXES
        ]
        variables.append(variable("fuel", bounded(0, self.fuel, "real"), self.fuel))
        if self.oob_crash:
            variables.append(variable("crash", bounded(0, 1, "real"), 0))
        moves = [(f"{word}_{axis}", axis) for word in ("accelerate", "decelerate") for axis in AXES]
        edges = [
            made
            for action, axis in moves
            for made in (self._fly(action, axis), self._meet_border(action, axis))
        ]
        return model(
            self.name, actions=[action for action, _ in moves], variables=variables, edges=edges
        )

    def properties(self) -> list[Json]:
        """The safety property, starting around the middle of the box."""
        reach = {"x": (0, 3), "y": (-2, 4), "z": (0, 5)}
        drift = {"x": (0.0, 0.5), "y": (0.0, 0.7), "z": (-0.3, 0.1)}
        start = [eq("fuel", self.fuel)]
        for axis, (lower, upper) in zip(AXES, self.box, strict=True):
            middle = (lower + upper) / 2
            below, above = reach[axis]
            slow, fast = drift[axis]
            start += [ge(f"pos_{axis}", middle + below), le(f"pos_{axis}", middle + above)]
            start += [ge(f"vel_{axis}", slow), le(f"vel_{axis}", fast)]
        failure = [le("fuel", 0), *map(_inside, self.danger)]
        if self.oob_crash:
            start.append(eq("crash", 0))
            failure.append(gt("crash", 0))
        return [
            planning_property(
                f"{self.name}-safety",
                goal=either(*map(_inside, self.goals)),
                failure=either(*failure),
                start=both(*start),
            )
        ]

    def _fly(self, action: str, axis: str) -> Json:
        """All new positions are inside the closed box."""
        positions = _positions(action, axis)
        inside = [
            term
            for other, (lower, upper) in zip(AXES, self.box, strict=True)
            for term in (ge(positions[other], lower), le(positions[other], upper))
        ]
        moved: dict[str, Expr] = {f"vel_{axis}": _velocity(action, axis), "fuel": sub("fuel", 1)}
        moved |= {f"pos_{other}": position for other, position in positions.items()}
        return edge(action, both(*self._can(action, axis), *inside), [destination(moved)])

    def _meet_border(self, action: str, axis: str) -> Json:
        """Some new position is on or beyond a face of the box; overlaps with flying on it."""
        positions = _positions(action, axis)
        beyond = [
            term
            for other, (lower, upper) in zip(AXES, self.box, strict=True)
            for term in (ge(positions[other], upper), le(positions[other], lower))
        ]
        guard = both(*self._can(action, axis), either(*beyond))
        stopped: dict[str, Expr] = {f"vel_{axis}": _velocity(action, axis), "fuel": sub("fuel", 1)}
        return edge(action, guard, [destination({"crash": 1} if self.oob_crash else stopped)])

    def _can(self, action: str, axis: str) -> list[Expr]:
        faster = action.startswith("accelerate")
        room = le(f"vel_{axis}", self.speed - 1) if faster else ge(f"vel_{axis}", 1 - self.speed)
        return [ge("fuel", 1), room]


def _velocity(action: str, axis: str) -> Expr:
    change = add if action.startswith("accelerate") else sub
    return change(f"vel_{axis}", 1)


def _positions(action: str, axis: str) -> dict[str, Expr]:
    """Where the aeroplane gets along each axis; the changed axis moves by its new velocity."""
    return {
        other: add(f"pos_{other}", _velocity(action, axis) if other == axis else f"vel_{other}")
        for other in AXES
    }


def _inside(box: Box) -> Expr:
    return both(
        *(
            term
            for axis, (lower, upper) in zip(AXES, box, strict=True)
            for term in (ge(f"pos_{axis}", lower), le(f"pos_{axis}", upper))
        )
    )


def _require_box(name: str, box: object) -> None:
    require_plain_tuple(name, box, 3)
    for axis, pair in zip(AXES, box, strict=True):  # type: ignore[call-overload]  # a tuple by now
        require_plain_tuple(f"{name} along {axis}", pair, 2)
        lower, upper = pair
        require_between(f"{name} along {axis}", lower, -LIMIT, LIMIT)
        require_between(f"{name} along {axis}", upper, -LIMIT, LIMIT)
        if lower >= upper:
            raise ConfigError(f"{name} along {axis} must be (lower, upper), got {pair!r}")
