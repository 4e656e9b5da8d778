"""A tree ensemble beside a network: distilled from it, and repaired by its leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safetest_gym.policies import Policy, TreeEnsemblePolicy, distil
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions
from safetest_gym.repair.requests import FaultSet
from safetest_gym.task import Task

__all__ = ["repaired_trees"]


def repaired_trees(
    policy: Policy, task: Task, faults: FaultSet, options: RepairOptions, trees: int
) -> tuple[TreeEnsemblePolicy | None, int]:
    """``trees`` trees that decide as ``policy`` does but for its faults; how many they keep.

    None if they cannot be repaired.
    """
    student = distil(policy, task, trees=trees)
    try:
        after, report = replace(options, method="leaves").run(student, faults)
    except RepairError:
        return None, len(faults)
    return after, int(np.sum(~report.fixed))
