"""A truck collects packages on a line, forwards only, and must not shoot past the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.line import ACC, DEC, LOAD, MOVE, TRUCK, VELOCITY, Line, Slide

__all__ = ["OneWayLine"]

# Icy locations are random in the published instances; most have {5, 7} at ten locations.
_PUBLISHED_ICY = {(15, 10, "icy_park"): (4, 5)}


@dataclass(frozen=True, kw_only=True, slots=True)
class OneWayLine(Line):
    """One-way line: velocities 0..speed; packages are put down at the last location only.

    In ``det``, ``move`` needs a package on board. A lost package lands one location after
    the truck's old one. By default the middle location and the next but one are icy (4
    and 5 in the published instance, ``icy_park`` with 15 packages and 10 locations).
    Parking stops all motions, not loading. Attributes: those of `Line`.
    """

    def _domain(self) -> str:
        return "one_way_line"

    def _least_locations(self) -> int:
        return 2

    def _default_icy(self) -> tuple[int, ...]:
        middle = self.locations // 2
        usual = tuple(place for place in (middle, middle + 2) if place < self.locations)
        return _PUBLISHED_ICY.get((self.packages, self.locations, self.variant), usual)

    def _lowest_velocity(self) -> int:
        return 0

    def _loading(self) -> Iterator[Json]:
        last = self.locations - 1
        for place in range(last):
            yield self._pick_up(place, ())
        yield self._drop(last, ())

    def _motions(self) -> Iterator[Json]:
        for place in range(self.locations):
            at = (*self._not_parked, build.eq(TRUCK, place))
            too_fast = self.locations - place
            slides = list(self._slides(place, at))
            for label in (ACC, DEC, MOVE):
                if too_fast <= self.speed:
                    yield self._crash(label, (*at, build.ge(VELOCITY, too_fast)))
                for slide in slides:
                    if slide.label == label:
                        yield from self._slide_edges(slide, min(place + 1, self.locations - 1))

    def _slides(self, place: int, at: tuple[Expr, ...]) -> Iterator[Slide]:
        """The motions at a location that do not crash."""
        top = min(self.speed, self.locations - place - 1)
        rolling = (*at, build.ge(VELOCITY, 1), build.le(VELOCITY, top))
        can_acc = (*at, build.le(VELOCITY, min(top, self.speed - 1)))
        faster = (*can_acc, build.ge(VELOCITY, 1))
        icy = place in self._icy_locations
        if icy:
            yield Slide(label=ACC, guards=faster, change=1, slip=0)
            yield Slide(label=ACC, guards=(*at, build.eq(VELOCITY, 0)), change=1)
        else:
            yield Slide(label=ACC, guards=can_acc, change=1)
        if top == 0:
            return
        slip = 0 if icy and self._dec_slips else None
        yield Slide(label=DEC, guards=rolling, change=-1, slip=slip)
        if not icy:
            load = (build.ge(LOAD, 1),) if self.variant == "det" else ()
            yield Slide(label=MOVE, guards=(*rolling, *load), change=0)
            return
        yield Slide(label=MOVE, guards=faster, change=0, slip=1)
        if top == self.speed:
            yield Slide(label=MOVE, guards=(*at, build.eq(VELOCITY, top)), change=0)
