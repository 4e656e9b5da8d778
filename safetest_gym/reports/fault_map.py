"""Data of the map of faults over two variables, which the page draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from safetest_gym.jani.tree import Variable
from safetest_gym.reports.fault_file import FaultList
from safetest_gym.reports.setting import Setting

__all__ = ["MOST_ON_MAP", "map_data", "telling_variables"]

MOST_ON_MAP = 20_000
"""Faults whose states the page carries."""

_MOST_VALUES = 40
"""A variable with a larger domain is shown by the values that occur, or in ranges."""


def map_data(faults: FaultList, setting: Setting | None) -> dict[str, Any] | None:
    """What the page needs; None if states have fewer than two variables."""
    if len(faults.variables) < 2 or not faults.faults:
        return None
    shown = faults.faults[:MOST_ON_MAP]
    declared: dict[str, Variable] = {}
    if setting is not None:
        declared = {variable.name: variable for variable in setting.task.variables}
    return {
        "variables": [_axis(name, declared.get(name)) for name in faults.variables],
        "states": [fault.state for fault in shown],
        "fixed": [int(fault.fixed) for fault in shown],
        "chosen": telling_variables(faults),
    }


def _axis(name: str, variable: Variable | None) -> dict[str, Any]:
    """A variable with its labels or its whole domain, where that is small."""
    axis: dict[str, Any] = {"name": name}
    if variable is None or variable.kind == "real":
        return axis
    if variable.locations:
        axis["labels"] = list(variable.locations)
    elif variable.kind == "bool":
        axis["labels"] = ["false", "true"]
    if variable.lower is not None and variable.upper is not None:
        lower, upper = int(variable.lower), int(variable.upper)
        if upper - lower < _MOST_VALUES:
            axis["domain"] = [lower, upper]
    return axis


def telling_variables(faults: FaultList) -> list[int]:
    """The two variables that say most about why decisions are faults.

    Those that the bad action changes most often, of these the ones with most values; what
    is the same in all faults comes last. In the order of declaration.
    """
    states = np.array([fault.state for fault in faults.faults], np.float64)
    outcomes = np.array([fault.outcome for fault in faults.faults], np.float64)
    changed = (states != outcomes).mean(axis=0)
    different = np.array([len(np.unique(column)) for column in states.T])
    order = sorted(
        range(states.shape[1]), key=lambda v: (different[v] > 1, changed[v], different[v])
    )
    return sorted(order[-2:])
