"""What the one-way and the two-way line share: places, packages, a truck with a velocity.

Every motion uses the velocity before the action: the truck first rolls that far, then its
velocity changes by the action's amount.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.checks import (
    require_between,
    require_int,
    require_plain_tuple,
    require_unique,
    with_tuples,
)
from safetest_gym.errors import ConfigError

__all__ = [
    "ACC",
    "AUX",
    "DEC",
    "DROP",
    "LOAD",
    "MOVE",
    "PARK",
    "PARKED",
    "PICK_UP",
    "TRUCK",
    "VELOCITY",
    "Line",
    "Slide",
    "load_at",
]

TRUCK = "truck_0"
LOAD = "truck_load_0"
VELOCITY = "truck_vel_0"
PARKED = "parked_0"
AUX = "aux_vel"
PICK_UP = "pick_up_truck_0"
DROP = "drop_truck_0"
ACC = "acc_truck_0"
DEC = "dec_truck_0"
MOVE = "move_truck_0"
PARK = "park_truck_0"

_VARIANTS = ("det", "icy", "icy_park")
_DEFAULTS = (3, 0.1, 0.1)


def load_at(location: int) -> str:
    """The variable that counts the packages at a location."""
    return f"location_load_{location}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Slide:
    """One motion: its label, where it holds, its change of velocity.

    Attributes:
        guards: conjuncts of the guard.
        change: added to the velocity.
        slip: added instead when the truck slips; None where it cannot slip.
    """

    label: str
    guards: tuple[Expr, ...]
    change: int
    slip: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line(ABC):
    """A line task: packages to the last location, no motion beyond an end.

    Attributes:
        packages: how many; all begin at location 0.
        locations: length of the line.
        variant: ``det``: nothing goes wrong; ``icy``: the truck may slip at icy locations
            and lose a package in any motion; ``icy_park``: the same, and it may park at
            the last location.
        speed: greatest velocity.
        icy: icy locations; None for two in proportion to the length.
        drop_probability: of losing a package in a motion (not in ``det``).
        icy_probability: of slipping at an icy location (not in ``det``).
        dec_slips: braking may slip too; always so with parking.
        fix_truck_start: the truck starts at location 0, else anywhere but at the end.
    """

    packages: int = 15
    locations: int = 10
    variant: Literal["det", "icy", "icy_park"] = "det"
    speed: int = 3
    icy: tuple[int, ...] | None = None
    drop_probability: float = 0.1
    icy_probability: float = 0.1
    dec_slips: bool = True
    fix_truck_start: bool = True

    def __post_init__(self) -> None:
        if self.variant not in _VARIANTS:
            raise ConfigError(f"variant must be one of {_VARIANTS}, got {self.variant!r}")
        require_int("packages", self.packages, 1)
        require_int("speed", self.speed, 1)
        require_int("locations", self.locations, self._least_locations())
        if self.icy is not None:
            object.__setattr__(self, "icy", with_tuples(self.icy))
            require_plain_tuple("icy", self.icy)
            for place in self.icy:
                require_int("a location in icy", place, 0, self.locations - 1)
            require_unique("icy", self.icy)
        chances = (self.drop_probability, self.icy_probability)
        for name, chance in zip(("drop_probability", "icy_probability"), chances, strict=True):
            require_between(name, chance, 0, 1)
        if sum(chances) >= 1:
            raise ConfigError(
                "drop_probability and icy_probability must sum to less than 1, got "
                f"{chances[0]} and {chances[1]}"
            )

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        parts: list[object] = [self._domain(), self.packages, self.locations, self.variant]
        parts += [f"v{self.speed}"] if self.speed != _DEFAULTS[0] else []
        if self.variant != "det":
            parts += ["ice", *self.icy] if self.icy is not None else []
            if (self.drop_probability, self.icy_probability) != _DEFAULTS[1:]:
                parts += [f"p{self.drop_probability:g}", f"q{self.icy_probability:g}"]
            parts += ["sure_dec"] if not self._dec_slips else []
        parts += ["free"] if not self.fix_truck_start else []
        return "_".join(map(str, parts))

    @property
    def observed(self) -> tuple[str, ...]:
        """Variables that the papers' policies see: all but the crash flag."""
        return tuple(v["name"] for v in self._variables() if v["name"] != AUX)

    def model(self) -> Json:
        """The JANI document, without properties."""
        edges = [*self._loading(), *self._motions()]
        actions = [PICK_UP, DROP, ACC, DEC, MOVE]
        if self._parking:
            actions.append(PARK)
            edges.append(self._park())
        return build.model(self.name, actions=actions, variables=self._variables(), edges=edges)

    def properties(self) -> list[Json]:
        """The planning property with the compact start condition."""
        return [
            build.planning_property(
                f"{self.name}-starts",
                goal=self._goal(),
                failure=build.le(AUX, -1),
                start=self._start(),
                goal_potential=self._potential(),
            )
        ]

    @abstractmethod
    def _domain(self) -> str:
        """First part of the name."""

    @abstractmethod
    def _least_locations(self) -> int:
        """Shortest line that makes sense."""

    @abstractmethod
    def _default_icy(self) -> tuple[int, ...]:
        """Icy locations if the user names none."""

    @abstractmethod
    def _lowest_velocity(self) -> int:
        """Lower bound of the velocity."""

    @abstractmethod
    def _loading(self) -> Iterator[Json]:
        """Pick-up and drop edges."""

    @abstractmethod
    def _motions(self) -> Iterator[Json]:
        """All acc, dec and move edges."""

    @property
    def scenery(self) -> Json:
        """What a picture shows besides the state: the locations that are really icy."""
        return {"icy": self._icy_locations}

    @property
    def _parking(self) -> bool:
        return self.variant == "icy_park"

    @property
    def _dec_slips(self) -> bool:
        return self.dec_slips or self._parking

    @property
    def _icy_locations(self) -> tuple[int, ...]:
        if self.variant == "det" or self.icy_probability == 0:
            return ()
        return self._default_icy() if self.icy is None else self.icy

    @property
    def _not_parked(self) -> tuple[Expr, ...]:
        return (build.le(PARKED, 0),) if self._parking else ()

    def _variables(self) -> list[Json]:
        amount = build.bounded(0, self.packages)
        declared = [
            build.variable(load_at(place), amount, 0 if place else self.packages)
            for place in range(self.locations)
        ]
        lowest = self._lowest_velocity()
        declared.append(build.variable(TRUCK, build.bounded(0, self.locations - 1), 0))
        declared.append(build.variable(LOAD, amount, 0))
        declared.append(build.variable(VELOCITY, build.bounded(lowest, self.speed), 0))
        if self._parking:
            declared.append(build.variable(PARKED, build.bounded(0, 1), 0))
        aux = build.bounded(min(lowest, -1), self.speed)
        declared.append(build.variable(AUX, aux, 1))
        return declared

    def _goal(self) -> Expr:
        return build.both(
            *(build.eq(load_at(place), 0) for place in range(self.locations - 1)),
            build.eq(load_at(self.locations - 1), self.packages),
            build.eq(TRUCK, self.locations - 1),
            build.ge(AUX, 0),
        )

    def _start(self) -> Expr:
        """A standing truck, no package at the last location, all packages accounted for."""
        at_start = build.eq(TRUCK, 0)
        everywhere = build.le(TRUCK, self.locations - 2)
        everything = [*(load_at(place) for place in range(self.locations)), LOAD]
        return build.both(
            build.ge(AUX, 0),
            build.eq(VELOCITY, 0),
            *([build.eq(PARKED, 0)] if self._parking else []),
            at_start if self.fix_truck_start else everywhere,
            build.eq(load_at(self.locations - 1), 0),
            build.eq(build.total(everything), self.packages),
        )

    def _potential(self) -> Expr:
        """10 per package at the last location, 10 while a load is on its way."""
        delivered = build.minimum(self.packages, load_at(self.locations - 1))
        moving = (
            build.ite(build.both(build.eq(TRUCK, place), build.ge(LOAD, 1)), 10, 0)
            for place in range(self.locations - 1)
        )
        return build.total([build.mul(10, delivered), *moving])

    def _pick_up(self, place: int, guards: Iterable[Expr]) -> Json:
        here = load_at(place)
        guard = build.both(
            *guards,
            build.eq(TRUCK, place),
            build.le(LOAD, self.packages - 1),
            build.ge(here, 1),
            build.eq(VELOCITY, 0),
        )
        moved: dict[str, Expr] = {here: build.sub(here, 1), LOAD: build.add(LOAD, 1)}
        return build.edge(PICK_UP, guard, [build.destination(moved)])

    def _drop(self, place: int, guards: Iterable[Expr]) -> Json:
        here = load_at(place)
        guard = build.both(
            *guards, build.eq(TRUCK, place), build.ge(LOAD, 1), build.eq(VELOCITY, 0)
        )
        moved: dict[str, Expr] = {here: build.add(here, 1), LOAD: build.sub(LOAD, 1)}
        return build.edge(DROP, guard, [build.destination(moved)])

    def _park(self) -> Json:
        guard = build.both(
            *self._not_parked, build.eq(TRUCK, self.locations - 1), build.eq(VELOCITY, 0)
        )
        return build.edge(PARK, guard, [build.destination({PARKED: 1})])

    def _crash(self, label: str, guards: Iterable[Expr]) -> Json:
        return build.edge(label, build.both(*guards), [build.destination({AUX: -1})])

    def _slide_edges(self, slide: Slide, drops_at: int) -> Iterator[Json]:
        """One motion: two edges, loaded and empty, if packages may drop; else one."""
        drop = 0.0 if self.variant == "det" else self.drop_probability
        slip = 0.0 if slide.slip is None else self.icy_probability
        splits: list[tuple[tuple[Expr, ...], float]] = [((), 0.0)]
        if drop:
            splits = [((build.ge(LOAD, 1),), drop), ((build.le(LOAD, 0),), 0.0)]
        for load_guard, lost in splits:
            outcomes = []
            if slide.slip is not None:
                outcomes.append(_rolled(slide.slip, None, slip))
            if lost:
                outcomes.append(_rolled(slide.change, drops_at, lost))
            sure = not outcomes
            outcomes.append(
                _rolled(slide.change, None, None if sure else round(1 - slip - lost, 12))
            )
            yield build.edge(slide.label, build.both(*slide.guards, *load_guard), outcomes)


def _rolled(change: int, dropped_at: int | None, probability: float | None) -> Json:
    assignments: dict[str, Expr] = {TRUCK: build.add(TRUCK, VELOCITY)}
    if change:
        assignments[VELOCITY] = build.add(VELOCITY, change)
    if dropped_at is not None:
        assignments[load_at(dropped_at)] = build.add(load_at(dropped_at), 1)
        assignments[LOAD] = build.sub(LOAD, 1)
    return build.destination(assignments, probability)
