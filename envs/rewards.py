"""Rewards as plain data: what a step is worth, resolved once per task into a plan.

Every reward is a frozen dataclass with a ``kind``, so that ``dataclasses.asdict`` (which
Gymnasium's ``spec.to_json`` uses) and `reward_from_data` are inverse to each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Expression, PlanningProperty

__all__ = [
    "DEFAULT_REWARD",
    "ExpressionReward",
    "GoalFailureReward",
    "GoalReward",
    "PotentialShaping",
    "Reward",
    "RewardData",
    "RewardPlan",
    "StepCost",
    "StepReward",
    "SumReward",
    "plan_reward",
    "reward_from_data",
]

When = Literal["step", "goal", "failing", "end"]


@dataclass(frozen=True, slots=True)
class RewardPlan:
    """What a step is worth: ``constants[o] + Σ weights[k, 0]·e_k(s) + weights[k, 1+o]·e_k(s')``.

    ``o`` is how the step from s to s' leaves the episode: 0 running, 1 goal, 2 failing,
    3 deadlock.

    Attributes:
        constants: shape (4,).
        expressions: the numeric expressions e_k, checked or as text.
        weights: shape (k, 5).
    """

    constants: NDArray[np.float64]
    expressions: tuple[Expression | str, ...]
    weights: NDArray[np.float64]


class Reward(Protocol):
    """Anything that can say what a step of a task is worth."""

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve for a task's property."""
        ...


RewardData = Reward | Mapping[str, object] | Sequence[object] | str


def _constants(*values: float) -> RewardPlan:
    return RewardPlan(np.array(values, dtype=np.float64), (), np.zeros((0, 5)))


def _weighted(expression: Expression | str, *weights: float) -> RewardPlan:
    return RewardPlan(np.zeros(4), (expression,), np.array([weights], dtype=np.float64))


def _require_finite(reward: object) -> None:
    """Refuse what is no finite number in the fields that are numbers."""
    for field in fields(reward):  # type: ignore[arg-type]  # only called on dataclasses
        value = getattr(reward, field.name)
        if field.type != "float" or (isinstance(value, float | int) and math.isfinite(value)):
            continue
        name = type(reward).__name__
        raise ConfigError(f"{field.name} of {name} must be a finite number, got {value!r}")


def _require(expression: Expression | None, name: str, property_: PlanningProperty) -> Expression:
    if expression is None:
        raise ConfigError(
            f"property {property_.name!r} has no {name}; take another reward or add "
            f"{name!r} to its objective"
        )
    return expression


@dataclass(frozen=True, slots=True)
class GoalFailureReward:
    """One number each for reaching the goal, for failing, and for every other step."""

    goal: float = 1.0
    failing: float = -1.0
    step: float = 0.0
    kind: Literal["goal_failure"] = "goal_failure"

    def __post_init__(self) -> None:
        _require_finite(self)

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; the property does not matter."""
        return _constants(self.step, self.goal, self.failing, self.step)


@dataclass(frozen=True, slots=True)
class StepCost:
    """Every step costs ``cost``, the last one too."""

    cost: float = 0.01
    kind: Literal["step_cost"] = "step_cost"

    def __post_init__(self) -> None:
        _require_finite(self)

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; the property does not matter."""
        return _constants(*[-self.cost] * 4)


@dataclass(frozen=True, slots=True)
class PotentialShaping:
    """``scale·(gamma·Φ(s') - Φ(s))`` with Φ the property's goal-potential.

    Use the learner's discount as ``gamma``. Φ counts as 0 where an episode ends, which
    is what leaves the best policies unchanged; ``terminal_potential=True`` takes Φ(s')
    there as well.
    """

    gamma: float = 0.99
    scale: float = 1.0
    terminal_potential: bool = False
    kind: Literal["potential_shaping"] = "potential_shaping"

    def __post_init__(self) -> None:
        _require_finite(self)
        if not 0 <= self.gamma <= 1:
            raise ConfigError(f"gamma of PotentialShaping must be in [0, 1], got {self.gamma}")

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; an error if the property has no goal-potential."""
        potential = _require(property_.goal_potential, "goal-potential", property_)
        after = self.scale * self.gamma
        end = after if self.terminal_potential else 0.0
        return _weighted(potential, -self.scale, after, end, end, end)


@dataclass(frozen=True, slots=True)
class GoalReward:
    """The property's goal-reward in the goal state that is reached."""

    scale: float = 1.0
    kind: Literal["goal_reward"] = "goal_reward"

    def __post_init__(self) -> None:
        _require_finite(self)

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; an error if the property has no goal-reward."""
        value = _require(property_.goal_reward, "goal-reward", property_)
        return _weighted(value, 0, 0, self.scale, 0, 0)


@dataclass(frozen=True, slots=True)
class StepReward:
    """The property's step-reward in the state that every step leads to."""

    scale: float = 1.0
    kind: Literal["step_reward"] = "step_reward"

    def __post_init__(self) -> None:
        _require_finite(self)

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; an error if the property has no step-reward."""
        value = _require(property_.step_reward, "step-reward", property_)
        return _weighted(value, 0, *[self.scale] * 4)


_WHEN: dict[When, tuple[int, int, int, int]] = {
    "step": (1, 1, 1, 1),
    "goal": (0, 1, 0, 0),
    "failing": (0, 0, 1, 0),
    "end": (0, 1, 1, 1),
}


@dataclass(frozen=True, slots=True)
class ExpressionReward:
    """``scale`` times a numeric expression over the variables, in the state reached.

    Attributes:
        expression: as conditions are written, such as ``"location_load_9 - 0.1"``.
        when: on every step, on reaching the goal, on failing, or at every end.
        difference: take off the expression's value in the state before.
    """

    expression: str
    scale: float = 1.0
    when: When = "step"
    difference: bool = False
    kind: Literal["expression"] = "expression"

    def __post_init__(self) -> None:
        _require_finite(self)
        if not isinstance(self.expression, str):
            raise ConfigError(f"the expression of a reward is a text, got {self.expression!r}")
        if self.when not in tuple(_WHEN):
            raise ConfigError(f"when must be one of {', '.join(_WHEN)}, got {self.when!r}")
        if self.difference and self.when != "step":
            raise ConfigError(f"difference goes with when='step' only, got when={self.when!r}")

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve; the text is checked when the task compiles it."""
        before = -self.scale if self.difference else 0.0
        return _weighted(self.expression, before, *(self.scale * on for on in _WHEN[self.when]))


@dataclass(frozen=True, slots=True)
class SumReward:
    """Several rewards added up."""

    parts: tuple[Reward, ...]
    kind: Literal["sum"] = "sum"

    def plan(self, property_: PlanningProperty) -> RewardPlan:
        """Resolve every part."""
        plans = [part.plan(property_) for part in self.parts]
        return RewardPlan(
            np.sum([plan.constants for plan in plans], axis=0) if plans else np.zeros(4),
            tuple(expression for plan in plans for expression in plan.expressions),
            np.concatenate([plan.weights for plan in plans]) if plans else np.zeros((0, 5)),
        )


DEFAULT_REWARD = GoalFailureReward()

_KINDS: dict[str, type] = {
    "expression": ExpressionReward,
    "goal_failure": GoalFailureReward,
    "goal_reward": GoalReward,
    "potential_shaping": PotentialShaping,
    "step_cost": StepCost,
    "step_reward": StepReward,
}


def reward_from_data(data: RewardData | None) -> Reward:
    """Read a reward.

    ``None`` is the default, a text is an `ExpressionReward`, a list is a sum, and a
    mapping has a ``kind`` and that reward's fields, as `dataclasses.asdict` gives them.
    """
    if data is None:
        return DEFAULT_REWARD
    if isinstance(data, str):
        return ExpressionReward(data)
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if isinstance(data, Sequence):
        return SumReward(tuple(reward_from_data(part) for part in data))  # type: ignore[arg-type]  # checked in the call
    if not hasattr(data, "plan"):
        raise ConfigError(f"a reward is a Reward, mapping, list or text, got {data!r}")
    return data


def _from_mapping(data: Mapping[str, object]) -> Reward:
    kind = data.get("kind")
    if kind == "sum":
        return reward_from_data(data.get("parts", ()))  # type: ignore[arg-type]  # checked in the call
    found = _KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        close = get_close_matches(str(kind), _KINDS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_KINDS)}, sum"
        raise ConfigError(f"unknown kind of reward {kind!r} ({hint})")
    known = [field.name for field in fields(found)]
    for name in data:
        if name not in known:
            raise ConfigError(f"{found.__name__} has no {name!r}; it has {', '.join(known)}")
    if found is ExpressionReward and "expression" not in data:
        raise ConfigError("a reward of kind 'expression' needs an 'expression'")
    made: Reward = found(**{str(name): value for name, value in data.items()})
    return made


def plan_reward(data: RewardData | None, property_: PlanningProperty) -> RewardPlan:
    """What steps are worth under ``data`` in a task with this property."""
    return reward_from_data(data).plan(property_)
