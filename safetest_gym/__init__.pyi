from . import repair, verify
from .callbacks.feedback import FeedbackCallback
from .callbacks.repair import RepairCallback
from .callbacks.safety_test import SafetyTestCallback
from .callbacks.shield import ShieldCallback
from .campaign.debugging import DebugConfig, debug_policy
from .campaign.pipeline import TestPlan
from .deciders import make_decider
from .deciders.checking import check_certificate
from .deciders.verdict import Budget, Verdict
from .envs.jani_env import JaniEnv
from .envs.sb3_vec_env import SB3VecEnv
from .envs.shield_wrapper import ShieldWrapper
from .errors import SafetestError
from .faults.analysis import find_faults
from .faults.fault import Fault
from .faults.store import FaultStore
from .fuzzing.fuzzer import Fuzzer
from .policies.evaluation import evaluate
from .policies.files import load_policy, save_policy
from .policies.imitation import distil
from .policies.maskable_dqn import MaskableDQN
from .policies.sb3 import policy_from_sb3
from .repair.learned_shield import LearnedShield
from .repair.requests import FaultSet, KeepSet
from .repair.shielded_policy import GuardedPolicy, ShieldedPolicy
from .repair.shields import DeciderShield, FaultShield
from .repair.shields_file import load_shield, save_shield
from .reports.report import write_report
from .task import Task, load_task

__all__ = [
    "Budget",
    "DebugConfig",
    "DeciderShield",
    "Fault",
    "FaultSet",
    "FaultShield",
    "FaultStore",
    "FeedbackCallback",
    "Fuzzer",
    "GuardedPolicy",
    "JaniEnv",
    "KeepSet",
    "LearnedShield",
    "MaskableDQN",
    "RepairCallback",
    "SB3VecEnv",
    "SafetestError",
    "SafetyTestCallback",
    "ShieldCallback",
    "ShieldWrapper",
    "ShieldedPolicy",
    "Task",
    "TestPlan",
    "Verdict",
    "check_certificate",
    "debug_policy",
    "distil",
    "evaluate",
    "find_faults",
    "load_policy",
    "load_shield",
    "load_task",
    "make_decider",
    "policy_from_sb3",
    "repair",
    "save_policy",
    "save_shield",
    "verify",
    "write_report",
]

__version__: str
