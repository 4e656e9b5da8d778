"""Repair Stable-Baselines3 models, on a copy that can be trained further, and their zips."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.sb3 import SB3Policy, policy_from_sb3
from safetest_gym.policies.scaling import Scaling
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, fixed_faults
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet, KeepSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stable_baselines3.common.base_class import BaseAlgorithm

__all__ = ["changed_tensors", "repair_sb3", "write_repaired_zip"]

_BODIES = ("mlp_extractor.policy_net.", "q_net.q_net.", "quantile_net.quantile_net.")


def repair_sb3(
    model: BaseAlgorithm,
    faults: FaultSet,
    interface: Interface | None = None,
    *,
    scalings: Sequence[Scaling] | None = None,
    keep: KeepSet | None = None,
    options: RepairOptions | None = None,
) -> tuple[Any, RepairReport]:
    """A copy of ``model`` in which all faults are fixed.

    For PPO, MaskablePPO, A2C, DQN, QR-DQN and MaskableDQN with plain networks. The copy has
    no environment; ``set_env`` gives it one. Its decisions are tested through torch.

    Args:
        interface: see `safetest_gym.policies.policy_from_sb3`, as ``scalings``.
        options: by default ``last-layer``; ``finetune`` is the other method for networks.

    Raises:
        RepairError: the faults conflict, or torch decides otherwise than computed.
        PolicyError: the model's network cannot be repaired.
    """
    before = policy_from_sb3(model, interface, scalings=scalings)
    if not isinstance(before, MlpPolicy):
        raise PolicyError(f"the network of this model cannot be repaired: {before.reason}")
    how = options or RepairOptions(method="last-layer")
    after, report = how.run(before, faults, keep)
    copy = _copy_of(model)
    copy.policy.load_state_dict(changed_tensors(copy.policy.state_dict(), before, after))
    _confirm(copy, after, faults, report)
    return copy, report


def write_repaired_zip(source: Path, target: Path, before: MlpPolicy, after: MlpPolicy) -> None:
    """Copy the zip of a model whose network is ``before`` and put ``after`` into it.

    Nothing is unpickled; the optimizer's state stays what it was.
    """
    import torch

    fresh = target.with_name(f"unfinished-{target.name}")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(fresh, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "policy.pth":
                tensors = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
                buffer = io.BytesIO()
                torch.save(changed_tensors(tensors, before, after), buffer)
                data = buffer.getvalue()
            new.writestr(entry, data)
    os.replace(fresh, target)


def _copy_of(model: Any) -> Any:
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    return type(model).load(buffer, device=model.device)


def _network(tensors: dict[str, Any]) -> list[str]:
    """Names of the linear layers that decide, in order."""
    names: set[str] = set()
    for body in _BODIES:
        names |= {key.rpartition(".")[0] for key in tensors if key.startswith(body)}
    ordered = sorted(names, key=lambda name: int(name.rpartition(".")[2]))
    return [*ordered, *(["action_net"] if "action_net.weight" in tensors else [])]


def changed_tensors(tensors: dict[str, Any], before: MlpPolicy, after: MlpPolicy) -> dict[str, Any]:
    """The state dict with the changed layers; quantiles of one action change alike."""
    changed = dict(tensors)
    names = _network(tensors)
    pairs = list(zip(before.layers, after.layers, strict=True))
    fixed = len(pairs) - len(names)
    for i, (old, new) in enumerate(pairs):
        if (old.weight == new.weight).all() and (old.bias == new.bias).all():
            continue
        # The layer after an encoder holds the encoder's sums as well.
        if fixed and i <= fixed:
            raise PolicyError(
                "the first layers of this model are fixed by its encoder; use method='last-layer'"
            )
        name = names[i - fixed]
        for part in ("weight", "bias"):
            key = f"{name}.{part}"
            changed[key] = _moved(tensors[key], getattr(old, part), getattr(new, part))
    return changed


def _moved(tensor: Any, old: NDArray[np.float32], new: NDArray[np.float32]) -> Any:
    import torch

    copies = len(tensor) // len(new)
    value = new
    if copies > 1:
        change = new.astype(np.float64) - old
        value = tensor.detach().cpu().numpy() + np.concatenate([change] * copies)
    return torch.as_tensor(np.array(value, np.float32), device=tensor.device)


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
