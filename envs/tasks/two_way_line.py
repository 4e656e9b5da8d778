"""A truck collects packages on a line, forwards and backwards, within both ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.line import ACC, DEC, MOVE, TRUCK, VELOCITY, Line, Slide

__all__ = ["TwoWayLine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoWayLine(Line):
    """Two-way line: velocities -speed..speed; packages are put down anywhere.

    In ``det``, ``move`` at velocity 0 waits; the other variants have no waiting. A lost
    package lands at the truck's old location. By default location 1 and the one after the
    middle are icy. Parking ends the run.
    Attributes: those of `Line`.
    """

    def _domain(self) -> str:
        return "two_way_line"

    def _least_locations(self) -> int:
        return 2

    def _default_icy(self) -> tuple[int, ...]:
        return tuple(sorted({1, min(self.locations // 2 + 1, self.locations - 1)}))

    def _lowest_velocity(self) -> int:
        return -self.speed

    def _loading(self) -> Iterator[Json]:
        for place in range(self.locations):
            yield self._pick_up(place, self._not_parked)
        for place in range(self.locations):
            yield self._drop(place, self._not_parked)

    def _motions(self) -> Iterator[Json]:
        for place in range(self.locations):
            at = (*self._not_parked, build.eq(TRUCK, place))
            slides = list(self._slides(place, at))
            for label in (ACC, DEC, MOVE):
                if place < self.speed:
                    yield self._crash(label, (*at, build.le(VELOCITY, -place - 1)))
                if place >= self.locations - self.speed:
                    yield self._crash(label, (*at, build.ge(VELOCITY, self.locations - place)))
                for slide in slides:
                    if slide.label == label:
                        yield from self._slide_edges(slide, place)

    def _slides(self, place: int, at: tuple[Expr, ...]) -> Iterator[Slide]:
        """The motions at a location that do not crash, to the left first."""
        left = -min(self.speed, place)
        right = min(self.speed, self.locations - place - 1)
        fast = self.speed - 1
        if place in self._icy_locations:
            yield from self._icy_slides(at, left, right)
            return
        least = 0 if self.variant == "det" else 1
        for lower, upper in ((left, -1), (0, min(right, fast))):
            yield from _slide(ACC, at, lower, upper, change=1)
        for lower, upper in ((max(left, -fast), -1), (0, right)):
            yield from _slide(DEC, at, lower, upper, change=-1)
        for lower, upper in ((left, -1), (least, right)):
            yield from _slide(MOVE, at, lower, upper, change=0)

    def _icy_slides(self, at: tuple[Expr, ...], left: int, right: int) -> Iterator[Slide]:
        """Motions on ice; the published model has ``acc`` at velocity 0 twice, so have we."""
        fast = self.speed - 1
        for lower, upper in ((left, -1), (1, min(right, fast))):
            yield from _slide(ACC, at, lower, upper, change=1, slip=0)
            yield from _slide(ACC, at, 0, 0, change=1)
        slip = 0 if self._dec_slips else None
        for lower, upper in ((max(left, -fast), -1), (0, right)):
            yield from _slide(DEC, at, lower, upper, change=-1, slip=slip)
        yield from _slide(MOVE, at, max(left, -fast), -1, change=0, slip=-1)
        yield from _slide(MOVE, at, 1, min(right, fast), change=0, slip=1)
        for extreme in (-self.speed, self.speed):
            if left <= extreme <= right:
                yield from _slide(MOVE, at, extreme, extreme, change=0)


def _slide(
    label: str,
    at: tuple[Expr, ...],
    lower: int,
    upper: int,
    *,
    change: int,
    slip: int | None = None,
) -> Iterator[Slide]:
    """A motion for the velocities lower..upper, if there are any."""
    if lower == upper:
        yield Slide(label=label, guards=(*at, build.eq(VELOCITY, lower)), change=change, slip=slip)
    elif lower < upper:
        between = (build.ge(VELOCITY, lower), build.le(VELOCITY, upper))
        yield Slide(label=label, guards=(*at, *between), change=change, slip=slip)
