"""A fault as the page shows it: in words, in pictures and in values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safetest_gym.faults import Fault
from safetest_gym.reports.fault_file import FaultList, FaultRow
from safetest_gym.reports.fault_map import telling_variables
from safetest_gym.reports.pictures import Painter, format_number
from safetest_gym.reports.setting import Setting

__all__ = ["FaultCard", "fault_cards"]


@dataclass(frozen=True, slots=True)
class FaultCard:
    """One fault.

    Attributes:
        state_picture, outcome_picture: data URIs, empty where the task is not known.
        values: (variable, value before, value after, does it change).
        alike: how many other faults have the same action and the same values of the
            variables that say most.
    """

    row: FaultRow
    text: str
    failing: bool | None
    values: list[tuple[str, str, str, bool]]
    alike: int = 0
    state_picture: str = ""
    outcome_picture: str = ""

    @property
    def changes(self) -> list[tuple[str, str, str, bool]]:
        """The values that differ."""
        return [entry for entry in self.values if entry[3]]

    @property
    def history(self) -> str:
        """What happened to it, in order."""
        return ", ".join(f"{what} with {policy or 'a policy'}" for what, policy in self.row.history)


def fault_cards(faults: FaultList, setting: Setting | None, most: int) -> list[FaultCard]:
    """Some faults of a store: one of each kind first, in their order."""
    painter = None if setting is None else Painter(setting)
    return [
        _plain(faults, row, alike) if painter is None else _painted(painter, row, alike)
        for row, alike in _by_kind(faults)[:most]
    ]


def _by_kind(faults: FaultList) -> list[tuple[FaultRow, int]]:
    """All faults, the first of each kind before the others; with how many more it has."""
    telling = telling_variables(faults)
    kinds: dict[tuple[str, tuple[float, ...]], list[FaultRow]] = {}
    for row in faults.faults:
        key = row.action, tuple(row.state[v] for v in telling)
        kinds.setdefault(key, []).append(row)
    first = [(rows[0], len(rows) - 1) for rows in kinds.values()]
    return first + [(row, 0) for rows in kinds.values() for row in rows[1:]]


def _plain(faults: FaultList, row: FaultRow, alike: int) -> FaultCard:
    before, after = (list(map(format_number, part)) for part in (row.state, row.outcome))
    values = _values(faults.variables, before, after)
    changes = ", ".join(f"{name} {old} → {new}" for name, old, new, differs in values if differs)
    text = f"{row.action} can lead to {changes or 'the same state'}"
    if row.alternatives:
        text += f"; safe: {', '.join(row.alternatives)}"
    return FaultCard(row, text, None, values, alike)


def _painted(painter: Painter, row: FaultRow, alike: int) -> FaultCard:
    task = painter.setting.task
    fault = Fault(
        np.array(row.state, task.dtype),
        task.actions.index(row.action),
        np.array(row.outcome, task.dtype),
        tuple(task.actions.index(name) for name in row.alternatives),
        row.run,
        row.step,
    )
    names = [variable.name for variable in task.variables]
    return FaultCard(
        row,
        fault.describe(task),
        task.is_failing(fault.outcome),
        _values(names, painter.values(fault.state), painter.values(fault.outcome)),
        alike,
        painter.draw(fault.state, step=row.step),
        painter.draw(fault.outcome, action=fault.action, step=row.step + 1, trail=[fault.state]),
    )


def _values(
    names: list[str], before: list[str], after: list[str]
) -> list[tuple[str, str, str, bool]]:
    return [
        (name, old, new, old != new) for name, old, new in zip(names, before, after, strict=True)
    ]
