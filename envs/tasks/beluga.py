"""Beluga: jigs leave an aeroplane in one order and are requested in another.

Racks are double-ended queues that hold jigs for later. After every shuffle chance decides
which of the two production lines asks next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from safetest_gym.envs.tasks.build import (
    Expr,
    Json,
    add,
    both,
    bounded,
    destination,
    edge,
    eq,
    ge,
    le,
    model,
    ne,
    planning_property,
    sub,
    variable,
)
from safetest_gym.envs.tasks.checks import require_between, require_int, require_plain_tuple
from safetest_gym.errors import ConfigError

__all__ = ["Beluga"]

Lines = tuple[tuple[int, ...], tuple[int, ...]]

NOBODY = -1
"""No neighbour, an empty end of a rack, a line that is done."""

ENDS = {"front": "back", "back": "front"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Beluga:
    """Jigs are moved from an aeroplane over racks to a factory that asks by chance.

    Attributes:
        jigs: how many arrive.
        racks: how many there are to store them.
        lines: per production line the jigs in the order it wants them; None deals them
            out in a fixed pattern, as published for three and four jigs.
        max_swaps: pushes onto racks that can happen at all; None: as published for four
            jigs and two racks, otherwise three per jig.
        rack_limit: the task fails when the last rack holds that many jigs; None: it fails
            when ``max_swaps`` pushes have happened.
        probability: chance that line 0 asks next, or the line just served.
    """

    jigs: int = 4
    racks: int = 2
    lines: Lines | None = None
    max_swaps: int | None = None
    rack_limit: int | None = None
    probability: float = 0.5

    def __post_init__(self) -> None:
        require_int("jigs", self.jigs, 2)
        require_int("racks", self.racks, 1)
        require_between("probability", self.probability, 0, 1)
        if self.max_swaps is not None:
            require_int("max_swaps", self.max_swaps, 1)
        if self.rack_limit is not None:
            require_int("rack_limit", self.rack_limit, 1, self.jigs)
        if self.lines is not None:
            require_plain_tuple("lines", self.lines, 2)
            for line in self.lines:
                require_plain_tuple("each of lines", line)
                for jig in line:
                    require_int("a jig in lines", jig, 0, self.jigs - 1)
            dealt = sorted(jig for line in self.lines for jig in line)
            if dealt != list(range(self.jigs)) or not all(self.lines):
                raise ConfigError(
                    f"lines must name each of the jigs 0..{self.jigs - 1} once, with at least one "
                    f"per line, got {self.lines!r}"
                )

    @property
    def name(self) -> str:
        """Such as ``beluga_4_2``."""
        parts = [f"beluga_{self.jigs}_{self.racks}"]
        if self.lines is not None and self.lines != _dealt(self.jigs):
            parts.append("lines" + "-".join(".".join(map(str, line)) for line in self.lines))
        parts += [] if self.max_swaps is None else [f"swaps{self.max_swaps}"]
        parts += [] if self.rack_limit is None else [f"rack{self.rack_limit}"]
        parts += [] if self.probability == 0.5 else [f"p{self.probability:g}"]
        return "_".join(parts)

    def model(self) -> Json:
        """The JANI document, without properties."""
        return _Rules(self).model()

    def properties(self) -> list[Json]:
        """Jigs arrive in any order and line 1 asks first; then the same with jig 0 asked for.

        There is one property only if line 1 begins with jig 0.
        """
        return _Rules(self).properties()


def _dealt(jigs: int) -> Lines:
    """Line 0 gets 0, 3, 4, 7, ...; line 1 gets 2, 1, 6, 5, ..."""
    first = tuple(jig for jig in range(jigs) if jig % 4 in (0, 3))
    second = sorted(set(range(jigs)) - set(first), key=lambda jig: (jig // 4, -jig))
    return first, tuple(second)


class _Rules:
    """The parameters with their defaults filled in, and what follows from them."""

    def __init__(self, task: Beluga) -> None:
        published = 6 if (task.jigs, task.racks) == (4, 2) else 3 * task.jigs
        self.name = task.name
        self.jigs = range(task.jigs)
        self.racks = range(task.racks)
        self.lines = task.lines or _dealt(task.jigs)
        self.max_swaps = published if task.max_swaps is None else task.max_swaps
        self.rack_limit = task.rack_limit
        self.probability = task.probability
        self.room = 3 * task.jigs
        self.trailer = task.jigs + task.racks
        self.truck = self.trailer + 1
        self.delivered = self.trailer + 2
        # Published models begin with a request for jig 0, whatever the lines want.
        wants_jig_0 = any(line[0] == 0 for line in self.lines)
        self.first_request = 0 if wants_jig_0 else self.lines[1][0]

    def model(self) -> Json:
        ends = [f"{end}_rack_{rack}" for end in ENDS for rack in self.racks]
        actions = ["unload_beluga_0", "send_to_factory"]
        actions += [f"push_{end}" for end in ends] + [f"pop_{end}" for end in ends]
        edges = [*self._send(), *self._unload_beluga()]
        for rack in self.racks:
            edges += [*self._push("front", rack), *self._push("back", rack)]
        for rack in self.racks:
            edges += [*self._pop("back", rack), *self._pop("front", rack)]
        return model(
            self.name,
            actions=[*actions, "unload_truck_0"],
            variables=self._variables(),
            edges=[*edges, *self._unload_truck()],
            constants={"failing_prob": float(self.probability)},
        )

    def _variables(self) -> list[Json]:
        count = len(self.jigs)
        neighbour, flag = bounded(NOBODY, count - 1), bounded(0, 1)
        made = [variable(f"jig_{jig}", bounded(0, self.delivered), jig) for jig in self.jigs]
        made += [
            variable(f"{end}_jig_{jig}", neighbour, NOBODY) for end in ENDS for jig in self.jigs
        ]
        made += [variable(f"rack_load_{r}", bounded(0, self.room), self.room) for r in self.racks]
        made += [
            variable(f"{end}_rack_{rack}", neighbour, NOBODY) for end in ENDS for rack in self.racks
        ]
        made += [
            variable("empty_trailer_0", flag, 1),
            variable("beluga_0", bounded(0, count), count),
            variable("next_jig", neighbour, self.first_request),
            variable("line_0", neighbour, self.lines[0][0]),
            variable("line_1", neighbour, self.lines[1][0]),
            variable("empty_truck", flag, 1),
            variable("num_swaps", bounded(0, self.max_swaps), 0),
        ]
        return made

    def properties(self) -> list[Json]:
        goal = both(*(eq(f"jig_{jig}", self.delivered) for jig in self.jigs))
        failure = ge("num_swaps", self.max_swaps)
        if self.rack_limit is not None:
            failure = le(f"rack_load_{self.racks[-1]}", self.room - self.rack_limit)
        requests = dict.fromkeys((self.lines[1][0], self.first_request))
        names = (f"{self.name}-safety", f"{self.name}-jig-0-first")
        return [
            planning_property(name, goal=goal, failure=failure, start=self._start(request))
            for name, request in zip(names, requests, strict=False)
        ]

    def _start(self, request: int) -> Expr:
        """All jigs in the aeroplane in any order; swaps are free where they cannot fail."""
        count = len(self.jigs)
        terms = [] if self.rack_limit is not None else [eq("num_swaps", 0)]
        terms += [eq("beluga_0", count), eq("next_jig", request)]
        terms += [eq(f"line_{number}", line[0]) for number, line in enumerate(self.lines)]
        terms += [eq("empty_trailer_0", 1), eq("empty_truck", 1)]
        for rack in self.racks:
            terms.append(eq(f"rack_load_{rack}", self.room))
            terms += [eq(f"{end}_rack_{rack}", NOBODY) for end in ENDS]
        for jig in self.jigs:
            terms += [le(f"jig_{jig}", count - 1)]
            terms += [eq(f"{end}_jig_{jig}", NOBODY) for end in ENDS]
            terms += [ne(f"jig_{jig}", f"jig_{other}") for other in self.jigs[jig + 1 :]]
        return both(*terms)

    def _draw(self, action: str, guards: list[Expr], effects: dict[str, Expr]) -> Iterator[Json]:
        """One edge per case of which lines still want something; chance only if both do."""
        line_0, line_1 = {"next_jig": "line_0"}, {"next_jig": "line_1"}
        chance = [
            destination({**effects, **line_0}, "failing_prob"),
            destination({**effects, **line_1}, sub(1, "failing_prob")),
        ]
        yield edge(action, both(*guards, ge("line_0", 0), ge("line_1", 0)), chance)
        yield edge(
            action, both(*guards, le("line_0", NOBODY)), [destination({**effects, **line_1})]
        )
        yield edge(
            action, both(*guards, le("line_1", NOBODY)), [destination({**effects, **line_0})]
        )

    def _send(self) -> Iterator[Json]:
        """The requested jig leaves for its line; one edge per request of the other line."""
        for number, line in enumerate(self.lines):
            mine, other = f"line_{number}", f"line_{1 - number}"
            for jig, after in zip(line, (*line[1:], NOBODY), strict=True):
                effects: dict[str, Expr] = {
                    "empty_truck": 1,
                    f"jig_{jig}": self.delivered,
                    mine: after,
                }
                for waiting in (NOBODY, *self.lines[1 - number]):
                    guard = both(
                        eq("next_jig", jig), eq(f"jig_{jig}", self.truck), eq(other, waiting)
                    )
                    yield edge("send_to_factory", guard, self._requests(effects, after, waiting))

    def _requests(self, effects: dict[str, Expr], after: int, waiting: int) -> list[Json]:
        """What the served line wants next, or what the other one waits for."""
        if NOBODY in (after, waiting):
            return [destination({**effects, "next_jig": max(after, waiting)})]
        return [
            destination({**effects, "next_jig": after}, "failing_prob"),
            destination({**effects, "next_jig": waiting}, sub(1, "failing_prob")),
        ]

    def _unload_beluga(self) -> Iterator[Json]:
        left = sub("beluga_0", 1)
        for jig in self.jigs:
            guard = both(ge("empty_trailer_0", 1), eq(f"jig_{jig}", left))
            effects: dict[str, Expr] = {
                "empty_trailer_0": 0,
                f"jig_{jig}": self.trailer,
                "beluga_0": left,
            }
            yield edge("unload_beluga_0", guard, [destination(effects)])

    def _unload_truck(self) -> Iterator[Json]:
        for jig in self.jigs:
            guards = [eq(f"jig_{jig}", self.truck), ge("empty_trailer_0", 1)]
            effects: dict[str, Expr] = {
                "empty_truck": 1,
                "empty_trailer_0": 0,
                f"jig_{jig}": self.trailer,
            }
            yield from self._draw("unload_truck_0", guards, effects)

    def _push(self, end: str, rack: int) -> Iterator[Json]:
        """A jig goes from the trailer to one end of a rack."""
        here, there, load = f"{end}_rack_{rack}", f"{ENDS[end]}_rack_{rack}", f"rack_load_{rack}"
        for jig in self.jigs:
            for old in (NOBODY, *(other for other in self.jigs if other != jig)):
                guards = [
                    eq(f"jig_{jig}", self.trailer),
                    ge(load, 1),
                    eq(here, old),
                    le("num_swaps", self.max_swaps - 1),
                ]
                effects: dict[str, Expr] = {
                    "empty_trailer_0": 1,
                    load: sub(load, 1),
                    f"jig_{jig}": len(self.jigs) + rack,
                    here: jig,
                    "num_swaps": add("num_swaps", 1),
                }
                if old == NOBODY:
                    effects |= {there: jig, f"front_jig_{jig}": NOBODY, f"back_jig_{jig}": NOBODY}
                else:
                    effects |= {f"{ENDS[end]}_jig_{jig}": old, f"{end}_jig_{old}": jig}
                yield from self._draw(f"push_{here}", guards, effects)

    def _pop(self, end: str, rack: int) -> Iterator[Json]:
        """The jig at one end of a rack goes to the truck."""
        here, there, load = f"{end}_rack_{rack}", f"{ENDS[end]}_rack_{rack}", f"rack_load_{rack}"
        for jig in self.jigs:
            behind = f"{ENDS[end]}_jig_{jig}"
            for new in (NOBODY, *(other for other in self.jigs if other != jig)):
                guard = both(
                    eq(f"jig_{jig}", len(self.jigs) + rack),
                    eq(here, jig),
                    eq(behind, new),
                    ge("empty_truck", 1),
                )
                effects: dict[str, Expr] = {
                    "empty_truck": 0,
                    f"jig_{jig}": self.truck,
                    behind: NOBODY,
                    load: add(load, 1),
                    here: new,
                }
                effects |= {there: NOBODY} if new == NOBODY else {f"{end}_jig_{new}": NOBODY}
                yield edge(f"pop_{here}", guard, [destination(effects)])
