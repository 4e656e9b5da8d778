"""Faults and bugs of policies: analysis, testing objectives, oracles and the fault store."""

from safetest_gym.faults.analysis import Direction, FaultAnalysis, find_faults
from safetest_gym.faults.components import bug_regions
from safetest_gym.faults.confirmation import (
    StateBounds,
    bug_gap,
    change_bound,
    fuzzing_bug_by_interval,
    fuzzing_bug_by_policy,
    is_fuzzing_bug,
    normalized_gap,
)
from safetest_gym.faults.exchange import (
    read_csv,
    read_jsonl,
    write_csv,
    write_jsonl,
    write_start_states,
)
from safetest_gym.faults.exhaustive import reachable_faults
from safetest_gym.faults.expected import (
    DiscountedReward,
    GoalProbability,
    SamplePlan,
    sampled_value,
)
from safetest_gym.faults.fault import Fault
from safetest_gym.faults.improvement import ImprovementOracle, UndoOracle, eliminate_actions
from safetest_gym.faults.objectives import (
    Bounds,
    FailureAvoidance,
    GoalReaching,
    Objective,
    Safety,
    SoftGoals,
    StepCost,
)
from safetest_gym.faults.oracles import (
    BugReport,
    DeciderOracle,
    LookaheadOracle,
    Oracle,
    PerfectOracle,
)
from safetest_gym.faults.store import Added, Chunk, Event, FaultStore, StoredFault
from safetest_gym.faults.task_graph import TaskGraph

__all__ = [
    "Added",
    "Bounds",
    "BugReport",
    "Chunk",
    "DeciderOracle",
    "Direction",
    "DiscountedReward",
    "Event",
    "FailureAvoidance",
    "Fault",
    "FaultAnalysis",
    "FaultStore",
    "GoalProbability",
    "GoalReaching",
    "ImprovementOracle",
    "LookaheadOracle",
    "Objective",
    "Oracle",
    "PerfectOracle",
    "Safety",
    "SamplePlan",
    "SoftGoals",
    "StateBounds",
    "StepCost",
    "StoredFault",
    "TaskGraph",
    "UndoOracle",
    "bug_gap",
    "bug_regions",
    "change_bound",
    "eliminate_actions",
    "find_faults",
    "fuzzing_bug_by_interval",
    "fuzzing_bug_by_policy",
    "is_fuzzing_bug",
    "normalized_gap",
    "reachable_faults",
    "read_csv",
    "read_jsonl",
    "sampled_value",
    "write_csv",
    "write_jsonl",
    "write_start_states",
]
