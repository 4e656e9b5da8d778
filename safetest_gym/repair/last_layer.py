"""Repair networks by the least change of the last layer's weights and biases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safetest_gym.policies.mlp import Layer, MlpPolicy
from safetest_gym.repair.demand import Demands
from safetest_gym.repair.features import layer_features
from safetest_gym.repair.least_change import least_change
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import RepairError, repair_problem
from safetest_gym.repair.ranking import unrankable

__all__ = ["repair_last_layer"]


def repair_last_layer(policy: MlpPolicy, demands: Demands, settings: Settings) -> Outcome:
    """The policy with the least change of the last layer that meets all demands.

    Raises:
        RepairError: no last layer can meet them together; ``faults`` are in conflict.
    """
    problem = repair_problem(
        layer_features(policy, demands.states),
        demands.faults,
        (demands.keep, demands.kept),
        settings.variant,
        settings.margin,
    )
    conflict = unrankable(problem)
    result = None
    if not len(conflict):
        result = least_change(problem, settings.solver, settings.limits)
        conflict = result.conflict
    if result is None or result.change is None:
        rows = np.flatnonzero(np.isin(problem.group[: problem.num_faults], conflict))
        raise RepairError(
            f"no change of the last layer fixes these {len(rows)} faults "
            "(and keeps what must be kept) together; fix fewer, or keep less (a finite penalty)",
            faults=demands.rows[rows],
        )
    last = policy.layers[-1]
    weight = (last.weight + result.change[:-1].T).astype(np.float32)
    bias = (last.bias + result.change[-1]).astype(np.float32)
    return Outcome(
        policy=replace(policy, layers=(*policy.layers[:-1], Layer(weight, bias, last.activation))),
        algorithm=result.algorithm,
        objective=result.cost,
        lower_bound=result.bound,
        changed=int((weight != last.weight).sum() + (bias != last.bias).sum()),
    )
