"""Families made to tell the deciders apart: small models with a known answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Json
from safetest_gym.envs.tasks.checks import require_int

__all__ = ["LayeredFamily", "OuterLoop"]

_LAYER = "layer"
_SIDE = "side"
_PLACE = "place"
_STEP = "step"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayeredFamily:
    """The layered family: one big cycle with 2 ** layers paths, and nothing to fear.

    Between the first and the last state lie layers of two states each; every step leads
    by chance to either state of the next layer, the last state leads back to the first.
    There is no failing and no goal state. A depth-first decider that caches safe states
    only when their whole component is done walks every path; others take 2 * layers + 2
    states.

    Attributes:
        layers: pairs of states between the first and the last.
    """

    layers: int = 20

    def __post_init__(self) -> None:
        require_int("layers", self.layers, 1)

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        return f"layered_{self.layers}"

    @property
    def observed(self) -> tuple[str, ...] | None:
        """Variables that the policy sees: all."""
        return None

    def model(self) -> Json:
        """The JANI document, without properties."""
        last = self.layers + 1
        onwards = build.edge(
            _STEP,
            build.le(_LAYER, self.layers - 1),
            [
                build.destination({_LAYER: build.add(_LAYER, 1), _SIDE: side}, 0.5)
                for side in (0, 1)
            ],
        )
        joined = build.edge(
            _STEP,
            build.eq(_LAYER, self.layers),
            [build.destination({_LAYER: last, _SIDE: 0})],
        )
        back = build.edge(_STEP, build.eq(_LAYER, last), [build.destination({_LAYER: 0})])
        return build.model(
            self.name,
            actions=[_STEP],
            variables=[
                build.variable(_LAYER, build.bounded(0, last), 0),
                build.variable(_SIDE, build.bounded(0, 1), 0),
            ],
            edges=[onwards, joined, back],
        )

    def properties(self) -> list[Json]:
        """The planning property; the only start is the first state."""
        start = build.both(build.eq(_LAYER, 0), build.eq(_SIDE, 0))
        return [
            build.planning_property(f"{self.name}-starts", goal=False, failure=False, start=start)
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class OuterLoop:
    """The outer-loop family: an unsafe start that iPI needs ``size`` rounds to refute.

    From state 0 the policy may enter any state of a chain 1..size. A state of the chain
    leads by chance to its right (named first) or left neighbour; left of state 1 lies the
    failing state. Every state is unsafe, but a depth-first round sees that of one more
    state only, because the neighbours it asks are still open. Size 2 is the published
    example.

    Attributes:
        size: length of the chain.
    """

    size: int = 2

    def __post_init__(self) -> None:
        require_int("size", self.size, 1)

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        return f"outer_loop_{self.size}"

    @property
    def observed(self) -> tuple[str, ...] | None:
        """Variables that the policy sees: all."""
        return None

    def model(self) -> Json:
        """The JANI document, without properties."""
        return build.model(
            self.name,
            actions=[*(_enter(place) for place in range(1, self.size + 1)), _STEP],
            variables=[build.variable(_PLACE, build.bounded(0, self.size + 1), 0)],
            edges=list(self._edges()),
        )

    def properties(self) -> list[Json]:
        """The planning property; the only start is state 0, failing is the last value."""
        return [
            build.planning_property(
                f"{self.name}-starts",
                goal=False,
                failure=build.eq(_PLACE, self.size + 1),
                start=build.eq(_PLACE, 0),
            )
        ]

    def _edges(self) -> Iterator[Json]:
        for place in range(1, self.size + 1):
            entered = build.destination({_PLACE: place})
            yield build.edge(_enter(place), build.eq(_PLACE, 0), [entered])
        for place in range(1, self.size + 1):
            right = [place + 1] if place < self.size else []
            left = [place - 1] if place > 1 else [self.size + 1]
            outcomes = [*right, *left]
            chance = 0.5 if len(outcomes) == 2 else None
            yield build.edge(
                _STEP,
                build.eq(_PLACE, place),
                [build.destination({_PLACE: target}, chance) for target in outcomes],
            )


def _enter(place: int) -> str:
    return f"enter_{place}"
