"""Repair: shields (masks), ensembles of trees, last layers of networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.repair.problem import RepairError
    from safetest_gym.repair.repair import RepairOptions
    from safetest_gym.repair.report import RepairReport, SideEffects, side_effects
    from safetest_gym.repair.requests import FaultSet, KeepSet
    from safetest_gym.repair.sb3_model import repair_sb3

__all__ = [
    "FaultSet",
    "KeepSet",
    "RepairError",
    "RepairOptions",
    "RepairReport",
    "SideEffects",
    "repair_sb3",
    "side_effects",
]

_HOMES = {
    "FaultSet": "requests",
    "KeepSet": "requests",
    "RepairError": "problem",
    "RepairOptions": "repair",
    "RepairReport": "report",
    "SideEffects": "report",
    "repair_sb3": "sb3_model",
    "side_effects": "report",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"safetest_gym.repair.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
