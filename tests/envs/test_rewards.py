from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from safetest_gym.envs.rewards import (
    DEFAULT_REWARD,
    ExpressionReward,
    GoalFailureReward,
    GoalReward,
    PotentialShaping,
    Reward,
    RewardPlan,
    StepCost,
    StepReward,
    SumReward,
    reward_from_data,
)
from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Literal, PlanningProperty

POTENTIAL, WORTH, TOLL = Literal(3.0, "real"), Literal(7.0, "real"), Literal(-0.5, "real")
PROPERTY = PlanningProperty("p", None, None, None, POTENTIAL, WORTH, TOLL)
BARE = PlanningProperty("bare", None, None, None)
ALL: list[Reward] = [
    GoalFailureReward(2.0, -3.0, -0.1),
    StepCost(0.2),
    PotentialShaping(0.9, 0.5),
    GoalReward(2.0),
    StepReward(),
    ExpressionReward("x + 1", 0.1, "goal"),
    SumReward((StepCost(), ExpressionReward("y", difference=True))),
]


def worth(plan: RewardPlan, before: list[float], after: list[float], outcome: int) -> float:
    """The plan's formula, written again."""
    total = float(plan.constants[outcome])
    for row, e, f in zip(plan.weights, before, after, strict=True):
        total += row[0] * e + row[1 + outcome] * f
    return total


def test_by_default_the_goal_is_worth_one_and_failing_minus_one() -> None:
    assert DEFAULT_REWARD.plan(BARE).constants.tolist() == [0.0, 1.0, -1.0, 0.0]


def test_a_deadlock_is_worth_what_a_step_is() -> None:
    assert GoalFailureReward(step=-0.5).plan(BARE).constants.tolist() == [-0.5, 1.0, -1.0, -0.5]


@pytest.mark.parametrize("reward", ALL)
def test_a_reward_survives_json_by_way_of_asdict(reward: Any) -> None:
    assert reward_from_data(json.loads(json.dumps(asdict(reward)))) == reward


@pytest.mark.parametrize("reward", ALL)
def test_a_reward_survives_pickling(reward: Reward) -> None:
    assert pickle.loads(pickle.dumps(reward)) == reward


def test_shaping_telescopes_over_an_episode() -> None:
    plan = PotentialShaping(gamma=0.9).plan(PROPERTY)
    potentials = [4.0, 6.0, 1.0, 8.0]
    rewards = [
        worth(plan, [before], [after], outcome)
        for before, after, outcome in zip(potentials, potentials[1:], [0, 0, 1], strict=False)
    ]
    discounted = sum(0.9**t * reward for t, reward in enumerate(rewards))
    assert discounted == pytest.approx(-4.0)


def test_shaping_can_keep_the_potential_of_the_last_state() -> None:
    plan = PotentialShaping(gamma=0.5, terminal_potential=True).plan(PROPERTY)
    assert worth(plan, [4.0], [6.0], 1) == -1.0


def test_goal_reward_counts_in_the_goal_only() -> None:
    plan = GoalReward(2.0).plan(PROPERTY)
    assert [worth(plan, [5.0], [7.0], outcome) for outcome in range(4)] == [0.0, 14.0, 0.0, 0.0]


def test_an_expression_can_be_a_difference() -> None:
    plan = ExpressionReward("x", difference=True).plan(BARE)
    assert worth(plan, [2.0], [5.0], 0) == 3.0


def test_a_sum_adds_constants_and_keeps_all_expressions() -> None:
    plan = SumReward((StepCost(0.5), GoalFailureReward(), StepReward())).plan(PROPERTY)
    assert plan.constants.tolist() == [-0.5, 0.5, -1.5, -0.5]
    assert plan.expressions == (TOLL,)
    assert plan.weights.shape == (1, 5)


def test_a_list_is_a_sum_and_a_text_an_expression() -> None:
    assert reward_from_data([StepCost(), "x"]) == SumReward((StepCost(), ExpressionReward("x")))


@pytest.mark.parametrize("reward", [PotentialShaping(), GoalReward(), StepReward()])
def test_a_property_without_the_term_is_an_error_that_names_both(reward: Reward) -> None:
    with pytest.raises(ConfigError, match=r"property 'bare' has no (goal|step)-"):
        reward.plan(BARE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "step_cots"}, "did you mean 'step_cost'"),
        ({"kind": "step_cost", "price": 1}, "StepCost has no 'price'; it has cost, kind"),
        ({"cost": 1}, "unknown kind of reward None"),
        (5, "a reward is a Reward, mapping, list or text"),
        ({"kind": "step_cost", "cost": float("nan")}, "cost of StepCost must be a finite number"),
        ({"kind": "step_cost", "cost": "much"}, "cost of StepCost must be a finite number"),
        ({"kind": "potential_shaping", "gamma": None}, "gamma .* must be a finite number"),
        ({"kind": "expression"}, "needs an 'expression'"),
        ({"kind": "expression", "expression": 5}, "the expression of a reward is a text"),
        ({"kind": "expression", "expression": "x", "when": [1]}, "when must be one of step"),
        ({"kind": "expression", "expression": "x", "when": "now"}, "when must be one of step"),
        ({"kind": "potential_shaping", "gamma": 1.5}, r"gamma .* must be in \[0, 1\]"),
    ],
)
def test_wrong_data_is_refused_with_what_would_be_right(data: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        reward_from_data(data)


def test_an_empty_sum_is_worth_nothing() -> None:
    plan = SumReward(()).plan(BARE)
    assert not np.any(plan.constants)
    assert not plan.expressions
