"""Repair Stable-Baselines3 models: their last layer, on a copy that can be trained further."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.sb3 import SB3Policy, policy_from_sb3
from safetest_gym.policies.scaling import Scaling
from safetest_gym.repair.problem import RepairError, Variant
from safetest_gym.repair.repair import fixed_faults, repair
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet, KeepSet
from safetest_gym.repair.solver import SolverName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stable_baselines3.common.base_class import BaseAlgorithm

__all__ = ["repair_sb3"]


def repair_sb3(
    model: BaseAlgorithm,
    faults: FaultSet,
    interface: Interface | None = None,
    *,
    scalings: Sequence[Scaling] | None = None,
    variant: Variant = "strong",
    keep: KeepSet | None = None,
    solver: SolverName = "auto",
    time_limit: float = 60.0,
) -> tuple[Any, RepairReport]:
    """A copy of ``model`` with the least change of its last layer that fixes all faults.

    For PPO, MaskablePPO, A2C, DQN, QR-DQN and MaskableDQN with plain networks. The copy has
    no environment; ``set_env`` gives it one. Its decisions are tested through torch.

    Args:
        interface: see `safetest_gym.policies.policy_from_sb3`, as ``scalings``.

    Raises:
        RepairError: the faults conflict, or torch decides otherwise than computed.
        PolicyError: the model's network cannot be repaired.
    """
    before = policy_from_sb3(model, interface, scalings=scalings)
    if not isinstance(before, MlpPolicy):
        raise PolicyError(f"the last layer of this model cannot be repaired: {before.reason}")
    after, report = repair(
        before,
        faults,
        method="last-layer",
        variant=variant,
        keep=keep,
        solver=solver,
        time_limit=time_limit,
    )
    copy = _copy_of(model)
    _move(copy.policy, before, after)
    _confirm(copy, after, faults, report)
    return copy, report


def _copy_of(model: Any) -> Any:
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    return type(model).load(buffer, device=model.device)


def _last_linear(policy: Any) -> Any:
    """The module that gives the scores."""
    if hasattr(policy, "action_net"):
        return policy.action_net
    net = policy.quantile_net if hasattr(policy, "quantile_net") else policy.q_net
    return (net.quantile_net if hasattr(net, "quantile_net") else net.q_net)[-1]


def _move(policy: Any, before: MlpPolicy, after: MlpPolicy) -> None:
    """Add the change of the last layer to the module, in every quantile alike."""
    import torch

    linear = _last_linear(policy)
    old, new = before.layers[-1], after.layers[-1]
    copies = linear.out_features // len(new.bias)
    with torch.no_grad():
        for name in ("weight", "bias"):
            parameter, value = getattr(linear, name), getattr(new, name)
            if copies > 1:
                change = value.astype(np.float64) - getattr(old, name)
                value = parameter.detach().cpu().numpy() + np.concatenate([change] * copies)
            parameter.copy_(torch.as_tensor(np.array(value, np.float32), device=parameter.device))


def _confirm(copy: Any, after: MlpPolicy, faults: FaultSet, report: RepairReport) -> None:
    """Test every fault that was fixed with torch itself."""
    copy.policy.set_training_mode(False)
    real = SB3Policy(copy.policy, after.interface, after.scalings)
    wrong = np.flatnonzero(report.fixed & ~fixed_faults(real, faults, report.variant))  # type: ignore[arg-type]  # a report's variant is one
    if len(wrong):
        raise RepairError(
            f"torch still decides {len(wrong)} repaired faults the old way: please report this",
            faults=wrong,
        )
