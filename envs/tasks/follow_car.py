"""Follow car: keep a distance to a car ahead that drives at constant speed."""

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

__all__ = ["FollowCar"]

LAST_EPISODE = 4000
LAST_POSITION = 300_000
TOP_SPEED = 200
ENOUGH_STEPS = 1000
LEAD_SPEED = 28.0
ACCELERATION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowCar:
    """The ego car chooses to speed up or slow down behind a car of constant speed.

    Attributes:
        timestep: seconds between two decisions; the published ones are 0.05, 0.1, ..., 0.7.
    """

    timestep: float = 0.4

    def __post_init__(self) -> None:
        require_positive("timestep", self.timestep)

    @property
    def name(self) -> str:
        """Such as ``follow_car_0.4``."""
        return f"follow_car_{self.timestep:g}"

    def model(self) -> Json:
        """The JANI document, without properties."""
        faster = add("ego_velocity", mul(ACCELERATION, "timestep"))
        slower = sub("ego_velocity", mul(ACCELERATION, "timestep"))
        return model(
            self.name,
            actions=("accelerate", "decelerate"),
            constants={"timestep": float(self.timestep), "lead_velocity": LEAD_SPEED},
            variables=(
                variable("episode", bounded(0, LAST_EPISODE), 0),
                variable("lead_position", bounded(0, LAST_POSITION, "real"), 50),
                variable("ego_position", bounded(0, LAST_POSITION, "real"), 30),
                variable("ego_velocity", bounded(0, TOP_SPEED, "real"), 28),
            ),
            edges=(
                _drive("accelerate", faster, le(faster, TOP_SPEED)),
                _drive("decelerate", slower, ge(slower, 0)),
            ),
        )

    def properties(self) -> list[Json]:
        """The safety property, starting anywhere in a box."""
        start = both(
            ge("lead_position", 40),
            le("lead_position", 50),
            ge("ego_position", 20),
            le("ego_position", 29.9999),
            ge("ego_velocity", 26),
            le("ego_velocity", 32),
            eq("episode", 0),
        )
        far = mul(ENOUGH_STEPS, mul("lead_velocity", "timestep"))
        goal = both(ge("episode", ENOUGH_STEPS), ge("ego_position", far))
        failure = le("lead_position", "ego_position")
        return [planning_property(f"{self.name}-safety", goal=goal, failure=failure, start=start)]


def _drive(action: str, velocity: Expr, in_range: Expr) -> Json:
    lead = add("lead_position", mul("lead_velocity", "timestep"))
    ego = add("ego_position", mul("ego_velocity", "timestep"))
    later = add("episode", 1)
    guard = both(le(lead, LAST_POSITION), le(ego, LAST_POSITION), in_range, le(later, LAST_EPISODE))
    moved: dict[str, Expr] = {
        "ego_velocity": velocity,
        "lead_position": lead,
        "ego_position": ego,
        "episode": later,
    }
    return edge(action, guard, [destination(moved)])
