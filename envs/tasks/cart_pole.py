"""Cart pole: keep a pole upright on a cart, in its linearised form."""

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
from safetest_gym.envs.tasks.checks import require_positive

__all__ = ["CartPole"]

ENOUGH_STEPS = 1000
LAST_EPISODE = ENOUGH_STEPS + 1
LAST_POSITION = 10
TOP_SPEED = 3
TOP_SPIN = 5
FALLEN = 0.21
FORCE = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class CartPole:
    """A cart is pushed left or right so that the pole on it does not fall.

    Attributes:
        timestep: seconds between two decisions; published: 0.003.
    """

    timestep: float = 0.003

    def __post_init__(self) -> None:
        require_positive("timestep", self.timestep)

    @property
    def name(self) -> str:
        """Such as ``cart_pole_0.003``."""
        return f"cart_pole_{self.timestep:g}"

    def model(self) -> Json:
        """The JANI document, without properties."""
        widest = max(0.3, FALLEN + TOP_SPIN * self.timestep)  # the angle has no guard
        return model(
            self.name,
            actions=("push_left", "push_right"),
            constants={
                "timestep": float(self.timestep),
                "cart_mass": 1.0,
                "poll_mass": 0.1,
                "half_poll_length": 0.5,
                "gravity": 9.8607,
            },
            variables=(
                variable("episode", bounded(0, LAST_EPISODE), 0),
                variable("position", bounded(-LAST_POSITION, LAST_POSITION, "real"), 0),
                variable("velocity", bounded(-TOP_SPEED, TOP_SPEED, "real"), 0),
                variable("angle", bounded(-widest, widest, "real"), 0),
                variable("angular_velocity", bounded(-TOP_SPIN, TOP_SPIN, "real"), 0),
            ),
            edges=(_push("push_left", -FORCE), _push("push_right", FORCE)),
        )

    def properties(self) -> list[Json]:
        """The safety property, starting anywhere in a box."""
        reach = {"position": 1.0, "velocity": 0.3, "angle": 0.2, "angular_velocity": 0.5}
        box = [term for var, far in reach.items() for term in (ge(var, -far), le(var, far))]
        return [
            planning_property(
                f"{self.name}-safety",
                goal=ge("episode", ENOUGH_STEPS),
                failure=either(ge("angle", FALLEN), le("angle", -FALLEN)),
                start=both(*box, eq("episode", 0)),
            )
        ]


def _push(action: str, force: int) -> Json:
    """Euler's step; every right-hand side reads the old values."""
    mass = add("cart_mass", "poll_mass")
    push = div(force, mass)
    lever = sub(div(4, 3), div("poll_mass", mass))
    turn = sub(mul("gravity", "angle"), push)
    position = add("position", mul("velocity", "timestep"))
    velocity = add("velocity", mul(sub(push, div(turn, mul(mass, lever))), "timestep"))
    spin = add("angular_velocity", mul(div(turn, mul("half_poll_length", lever)), "timestep"))
    later = add("episode", 1)
    left = both(ge(velocity, -TOP_SPEED), le(spin, TOP_SPIN))
    right = both(le(velocity, TOP_SPEED), ge(spin, -TOP_SPIN))
    guard = both(
        ge(position, -LAST_POSITION),
        le(position, LAST_POSITION),
        left if force < 0 else right,
        le(later, LAST_EPISODE),
    )
    moved: dict[str, Expr] = {
        "position": position,
        "velocity": velocity,
        "angle": add("angle", mul("angular_velocity", "timestep")),
        "angular_velocity": spin,
        "episode": later,
    }
    return edge(action, guard, [destination(moved)])
