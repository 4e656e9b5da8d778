"""A truck carries packages to the far side of a bridge that holds little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.checks import require_int

__all__ = ["Transport"]

_TRUCK = "truck_0"
_LOAD = "truck_load_0"
_SPARE = "last_capacity_diff"
_ACTIONS = ("pick_up_truck_0", "drop_truck_0", "drive_forward", "drive_backward")


@dataclass(frozen=True, kw_only=True, slots=True)
class Transport:
    """Transport: all packages over the bridge, never more than it carries.

    Attributes:
        packages: how many; the truck could hold them all.
        locations: on one road; the bridge leads to the last one.
        bridge: how many packages the bridge carries; backwards no road carries any.
    """

    packages: int = 15
    locations: int = 10
    bridge: int = 1

    def __post_init__(self) -> None:
        require_int("packages", self.packages, 1)
        require_int("locations", self.locations, 2)
        require_int("bridge", self.bridge, 1, self.packages)

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        wide = f"_bridge{self.bridge}" if self.bridge != 1 else ""
        return f"transport_{self.packages}_{self.locations}{wide}"

    @property
    def observed(self) -> tuple[str, ...]:
        """Variables that the papers' policies see: all but the spare capacity."""
        return tuple(v["name"] for v in self._variables() if v["name"] != _SPARE)

    def model(self) -> Json:
        """The JANI document, without properties."""
        return build.model(
            self.name,
            actions=_ACTIONS,
            variables=self._variables(),
            edges=[*self._loading(), *self._driving()],
        )

    def properties(self) -> list[Json]:
        """The planning property with the compact start condition."""
        last = self.locations - 1
        loads = [_load_at(place) for place in range(self.locations)]
        return [
            build.planning_property(
                f"{self.name}-starts",
                goal=build.both(
                    *(build.eq(load, 0) for load in loads[:-1]),
                    build.eq(loads[-1], self.packages),
                    build.eq(_TRUCK, last),
                    build.ge(_SPARE, 0),
                ),
                failure=build.le(_SPARE, -1),
                start=build.both(
                    build.ge(_SPARE, 0),
                    build.le(_TRUCK, last - 1),
                    build.eq(loads[-1], 0),
                    build.eq(build.total([*loads, _LOAD]), self.packages),
                ),
                goal_potential=self._potential(),
            )
        ]

    def _variables(self) -> list[Json]:
        amount = build.bounded(0, self.packages)
        return [
            *(
                build.variable(_load_at(place), amount, 0 if place else self.packages)
                for place in range(self.locations)
            ),
            build.variable(_TRUCK, build.bounded(0, self.locations - 1), 0),
            build.variable(_LOAD, amount, 0),
            build.variable(_SPARE, build.bounded(-self.packages, self.packages), 0),
        ]

    def _loading(self) -> Iterator[Json]:
        for action, change in zip(_ACTIONS[:2], (1, -1), strict=True):
            for place in range(self.locations):
                here = _load_at(place)
                room = build.le(_LOAD, self.packages - 1)
                guards = [room, build.ge(here, 1)] if change == 1 else [build.ge(_LOAD, 1)]
                moved: dict[str, Expr] = {
                    here: build.sub(here, change),
                    _LOAD: build.add(_LOAD, change),
                }
                guard = build.both(build.eq(_TRUCK, place), *guards)
                yield build.edge(action, guard, [build.destination(moved)])

    def _driving(self) -> Iterator[Json]:
        for place in range(self.locations):
            if place:
                yield self._drive(_ACTIONS[3], place, place - 1, 0)
            if place < self.locations - 1:
                yield self._drive(_ACTIONS[2], place, place + 1, self._capacity(place))

    def _capacity(self, place: int) -> int:
        """Capacity of the best road out of a location."""
        if place == self.locations - 1:
            return 0
        return self.bridge if place == self.locations - 2 else self.packages

    def _drive(self, action: str, place: int, target: int, capacity: int) -> Json:
        moved: dict[str, Expr] = {_TRUCK: target, _SPARE: build.sub(capacity, _LOAD)}
        return build.edge(action, build.eq(_TRUCK, place), [build.destination(moved)])

    def _potential(self) -> Expr:
        """As published, 10 per excess package where the best road out cannot carry all."""
        last = self.locations - 1
        terms = [build.mul(10, build.minimum(self.packages, _load_at(last)))]
        for place in range(self.locations):
            here = build.eq(_TRUCK, place)
            capacity = self._capacity(place)
            if capacity < self.packages:
                spare = build.minimum(0, build.sub(_LOAD, capacity))
                terms.append(build.ite(here, build.mul(-10, spare), 0))
            if place < last:
                terms.append(build.ite(build.both(here, build.ge(_LOAD, 1)), 10, 0))
        return build.total(terms)


def _load_at(place: int) -> str:
    return f"location_load_{place}"
