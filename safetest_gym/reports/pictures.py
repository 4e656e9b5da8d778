"""States as pictures that need no other file."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.reports.setting import Setting

__all__ = ["Painter", "format_number"]

_COLORS = 48
"""Of a picture's palette; text stays readable and a picture has about 5 kB."""


def format_number(value: float) -> str:
    """A number of a state as people read it."""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.4g}"


@dataclass(frozen=True, slots=True, eq=False)
class Painter:
    """Draws states of one task."""

    setting: Setting

    def draw(
        self,
        state: NDArray[Any],
        *,
        action: int | None = None,
        step: int = 0,
        trail: Sequence[NDArray[Any]] = (),
    ) -> str:
        """A data URI of the state after ``action``; ``trail`` are the states before it."""
        rendering: Any = import_module("safetest_gym.envs.rendering")
        setting, task = self.setting, self.setting.task
        scene = rendering.Scene(
            title=task.name,
            action=None if action is None else task.actions[action],
            step=step,
            outcome=self._outcome(state),
            parameters=setting.parameters or {},
            variables=task.variables,
            trail=[task.as_dict(before) for before in trail],
        )
        image = rendering.picture(setting.picture)(task.as_dict(state), scene)
        file = io.BytesIO()
        image.quantize(_COLORS, dither=0).save(file, "PNG", optimize=True)
        return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"

    def _outcome(self, state: NDArray[Any]) -> str | None:
        task = self.setting.task
        if task.is_failing(state):
            return "failing"
        return "goal" if task.is_goal(state) else None

    def values(self, state: NDArray[Any]) -> list[str]:
        """The values of all variables as text."""
        shown = []
        for variable, value in zip(self.setting.task.variables, state.tolist(), strict=True):
            if variable.locations:
                shown.append(variable.locations[int(value)])
            elif variable.kind == "bool":
                shown.append("true" if value else "false")
            else:
                shown.append(format_number(value))
        return shown

    def changes(self, before: NDArray[Any], after: NDArray[Any], most: int = 6) -> str:
        """The variables that differ, in words."""
        names = [variable.name for variable in self.setting.task.variables]
        old, new = self.values(before), self.values(after)
        places = np.flatnonzero(before != after).tolist()
        parts = [f"{names[v]} {old[v]} → {new[v]}" for v in places[:most]]
        rest = f" and {len(places) - most} more" if len(places) > most else ""
        return (", ".join(parts) + rest) if parts else "nothing changes"
