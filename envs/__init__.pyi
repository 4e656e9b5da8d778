from .jani_env import JaniEnv
from .rewards import (
    ExpressionReward,
    GoalFailureReward,
    GoalReward,
    PotentialShaping,
    Reward,
    StepCost,
    StepReward,
    SumReward,
)
from .sb3_vec_env import SB3VecEnv
from .shielding import Shield
from .vector_env import JaniVectorEnv

__all__ = [
    "ExpressionReward",
    "GoalFailureReward",
    "GoalReward",
    "JaniEnv",
    "JaniVectorEnv",
    "PotentialShaping",
    "Reward",
    "SB3VecEnv",
    "Shield",
    "StepCost",
    "StepReward",
    "SumReward",
]
