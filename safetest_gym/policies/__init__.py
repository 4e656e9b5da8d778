"""Policies: what is tested, in a form that analyses can call millions of times.

Names are loaded when first used; learners and libraries only when something needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.policies.evaluation import Evaluation, EvaluationConfig, evaluate
    from safetest_gym.policies.files import load_policy, read_vec_normalize, save_policy
    from safetest_gym.policies.function import CallablePolicy, RandomPolicy
    from safetest_gym.policies.imitation import ImitationReport, compare, distil
    from safetest_gym.policies.interface import Interface
    from safetest_gym.policies.maskable_dqn import MaskableDQN
    from safetest_gym.policies.mlp import Layer, MlpPolicy
    from safetest_gym.policies.native import NativePolicy
    from safetest_gym.policies.policy import Policy, ScoredPolicy
    from safetest_gym.policies.sb3 import SB3Policy, policy_from_sb3, save_sb3_interface
    from safetest_gym.policies.scaling import Scaling
    from safetest_gym.policies.table import TablePolicy
    from safetest_gym.policies.trees import Tree, TreeEnsemblePolicy
    from safetest_gym.policies.xgboost_file import policy_from_booster

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

_HOMES = {
    "CallablePolicy": "function",
    "Evaluation": "evaluation",
    "EvaluationConfig": "evaluation",
    "ImitationReport": "imitation",
    "Interface": "interface",
    "Layer": "mlp",
    "MaskableDQN": "maskable_dqn",
    "MlpPolicy": "mlp",
    "NativePolicy": "native",
    "Policy": "policy",
    "RandomPolicy": "function",
    "SB3Policy": "sb3",
    "Scaling": "scaling",
    "ScoredPolicy": "policy",
    "TablePolicy": "table",
    "Tree": "trees",
    "TreeEnsemblePolicy": "trees",
    "compare": "imitation",
    "distil": "imitation",
    "evaluate": "evaluation",
    "load_policy": "files",
    "policy_from_booster": "xgboost_file",
    "policy_from_sb3": "sb3",
    "read_vec_normalize": "files",
    "save_policy": "files",
    "save_sb3_interface": "sb3",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"safetest_gym.policies.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
