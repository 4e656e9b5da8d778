"""Inverted pendulum: hold a pole upright by turning it at its lower end."""

from __future__ import annotations

from dataclasses import dataclass

from safetest_gym.envs.tasks.build import (
    Expr,
    Json,
    add,
    both,
    bounded,
    destination,
    div,
    edge,
    either,
    eq,
    ge,
    le,
    model,
    mul,
    planning_property,
    sub,
    variable,
)
from safetest_gym.envs.tasks.checks import require_between, require_positive

__all__ = ["InvertedPendulum"]

LAST_EPISODE = 4000
ENOUGH_STEPS = 1000
FALLEN = 0.785
TOP_SPIN = 10
TORQUE = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class InvertedPendulum:
    """A pole that falls by itself is turned left, turned right or left alone.

    Attributes:
        timestep: seconds between two decisions, at most 0.6 (beyond that one step can
            leave the variables' bounds); published: 0.1.
    """

    timestep: float = 0.1

    def __post_init__(self) -> None:
        require_positive("timestep", self.timestep)
        require_between("timestep", self.timestep, 0, 0.6)

    @property
    def name(self) -> str:
        """Such as ``inverted_pendulum_0.1``."""
        return f"inverted_pendulum_{self.timestep:g}"

    def model(self) -> Json:
        """The JANI document, without properties."""
        return model(
            self.name,
            actions=("rotate_left", "rotate_right", "skip"),
            constants={
                "timestep": float(self.timestep),
                "mass": 1.0,
                "length": 1.0,
                "gravity": 9.8607,
            },
            variables=(
                variable("episode", bounded(0, LAST_EPISODE), 0),
                variable("angle", bounded(-7.85, 7.85, "real"), 0),
                variable("angular_velocity", bounded(-TOP_SPIN, TOP_SPIN, "real"), 0),
            ),
            edges=(_turn("rotate_left", -TORQUE), _turn("rotate_right", TORQUE), _turn("skip", 0)),
        )

    def properties(self) -> list[Json]:
        """The safety property, starting close to upright."""
        start = both(
            ge("angle", -0.05),
            le("angle", 0.05),
            ge("angular_velocity", -0.1),
            le("angular_velocity", 0.1),
            eq("episode", 0),
        )
        return [
            planning_property(
                f"{self.name}-safety",
                goal=ge("episode", ENOUGH_STEPS),
                failure=either(ge("angle", FALLEN), le("angle", -FALLEN)),
                start=start,
            )
        ]


def _turn(action: str, torque: int) -> Json:
    """The angle moves with the new angular velocity; a turn must not end in a failure."""
    fall = mul(div(mul(-3, "gravity"), mul(2, "length")), sub(0, "angle"))
    effort = mul(div(3, mul("mass", mul("length", "length"))), torque)
    spin = add("angular_velocity", mul(add(fall, effort) if torque else fall, "timestep"))
    angle = add("angle", mul(spin, "timestep"))
    later = add("episode", 1)
    guards = [le(later, LAST_EPISODE)]
    if torque:
        in_range = ge(spin, -TOP_SPIN) if torque < 0 else le(spin, TOP_SPIN)
        guards = [ge(angle, -FALLEN), le(angle, FALLEN), in_range, *guards]
    moved: dict[str, Expr] = {"angle": angle, "angular_velocity": spin, "episode": later}
    return edge(action, both(*guards), [destination(moved)])
