"""Bouncing ball: hit a ball that loses energy often enough to keep it bouncing."""

from __future__ import annotations

import math
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
    eq,
    ge,
    gt,
    le,
    model,
    mul,
    planning_property,
    sub,
    variable,
)
from safetest_gym.envs.tasks.checks import require_between, require_positive

__all__ = ["BouncingBall"]

LAST_EPISODE = 4000
ENOUGH_STEPS = 1000
TOP_SPEED = 100
GRAVITY = -9.8067
PUSH_UPPER = 9
PUSH_SPEED = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class BouncingBall:
    """A falling and bouncing ball can be hit downwards while its height is in a window.

    Attributes:
        timestep: seconds between two decisions; published: 0.3.
        push: least height at which the ball can be hit; a ball without the energy to
            come back up to it fails. Published: 5 and 7.
    """

    timestep: float = 0.3
    push: float = 5

    def __post_init__(self) -> None:
        require_positive("timestep", self.timestep)
        require_positive("push", self.push)
        require_between("push", self.push, 0, PUSH_UPPER)

    @property
    def name(self) -> str:
        """Such as ``bouncing_ball_0.3_push5``."""
        return f"bouncing_ball_{self.timestep:g}_push{self.push:g}"

    def model(self) -> Json:
        """The JANI document, without properties."""
        return model(
            self.name,
            actions=("push", "skip"),
            constants={
                "timestep": float(self.timestep),
                "gravity": GRAVITY,
                "height_coefficient": 0.9,
                "velocity_coefficient": -0.9487,
                "return_velocity": round(math.sqrt(-2 * GRAVITY * self.push), 4),
                "push_lower": self.push,
                "push_upper": PUSH_UPPER,
            },
            variables=(
                variable("episode", bounded(0, LAST_EPISODE), 0),
                variable("height", bounded(0, 1000, "real"), 5),
                variable("velocity", bounded(-TOP_SPEED, TOP_SPEED, "real"), 1),
            ),
            edges=(
                _fly("push", PUSH_SPEED),
                _bounce("push", PUSH_SPEED),
                _fly("skip", 0),
                _bounce("skip", 0),
            ),
        )

    def properties(self) -> list[Json]:
        """The safety property, starting with a slow ball at height 5 to 9."""
        start = both(
            ge("height", 5),
            le("height", 9),
            ge("velocity", -1),
            le("velocity", 1),
            eq("episode", 0),
        )
        energy = mul("velocity", div("push_lower", "return_velocity"))
        least = sub("push_lower", 0.0001)
        failure = both(
            le(add("height", energy), least),
            le(sub("height", energy), least),
            le("episode", ENOUGH_STEPS - 1),
        )
        goal = ge("episode", ENOUGH_STEPS)
        return [planning_property(f"{self.name}-safety", goal=goal, failure=failure, start=start)]


def _fall() -> Expr:
    """How far the ball comes down within a time step."""
    square = mul("timestep", "timestep")
    return sub(mul(sub(0, "velocity"), "timestep"), mul(0.5, mul("gravity", square)))


def _edge(action: str, push: int, guards: list[Expr], moved: dict[str, Expr]) -> Json:
    """What flight and bounce share: the window for hits and the step count."""
    window = [ge("height", "push_lower"), le("height", "push_upper")] if push else []
    later = add("episode", 1)
    guard = both(*window, *guards, le(later, LAST_EPISODE))
    return edge(action, guard, [destination({**moved, "episode": later})])


def _fly(action: str, push: int) -> Json:
    """The ball does not reach the ground within this time step."""
    pushed = sub("velocity", push) if push else "velocity"
    slow = ge(add(pushed, mul("gravity", "timestep")), -TOP_SPEED)
    gain = mul("timestep", "gravity")
    square = mul("timestep", "timestep")
    rise = add(mul("velocity", "timestep"), mul(mul(0.5, "gravity"), square))
    moved: dict[str, Expr] = {
        "height": add("height", rise),
        "velocity": add("velocity", sub(gain, push) if push else gain),
    }
    return _edge(action, push, [gt("height", _fall()), slow], moved)


def _bounce(action: str, push: int) -> Json:
    """The ball hits the ground: it turns around and loses a tenth of its energy."""
    pushed = sub("velocity", push) if push else "velocity"
    turned = mul(pushed, "velocity_coefficient")
    moved: dict[str, Expr] = {"height": mul("height", "height_coefficient"), "velocity": turned}
    return _edge(action, push, [le("height", _fall()), le(turned, TOP_SPEED)], moved)
