from .evaluation import Evaluation, EvaluationConfig, evaluate
from .files import load_policy, read_vec_normalize, save_policy
from .function import CallablePolicy, RandomPolicy
from .imitation import ImitationReport, compare, distil
from .interface import Interface
from .maskable_dqn import MaskableDQN
from .mlp import Layer, MlpPolicy
from .native import NativePolicy
from .policy import Policy, ScoredPolicy
from .sb3 import SB3Policy, policy_from_sb3, save_sb3_interface
from .scaling import Scaling
from .table import TablePolicy
from .trees import Tree, TreeEnsemblePolicy
from .xgboost_file import policy_from_booster

__all__ = [
    "CallablePolicy",
    "Evaluation",
    "EvaluationConfig",
    "ImitationReport",
    "Interface",
    "Layer",
    "MaskableDQN",
    "MlpPolicy",
    "NativePolicy",
    "Policy",
    "RandomPolicy",
    "SB3Policy",
    "Scaling",
    "ScoredPolicy",
    "TablePolicy",
    "Tree",
    "TreeEnsemblePolicy",
    "compare",
    "distil",
    "evaluate",
    "load_policy",
    "policy_from_booster",
    "policy_from_sb3",
    "read_vec_normalize",
    "save_policy",
    "save_sb3_interface",
]
