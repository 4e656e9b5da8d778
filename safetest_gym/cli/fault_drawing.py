"""A fault as a drawing for the terminal: its state, and beside it the bad outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

    from safetest_gym.faults import Fault
    from safetest_gym.task import Task

__all__ = ["draw_fault"]

_COLORS = ("blue", "dark_orange3", "green4", "purple", "magenta", "dark_cyan")
_TOKEN = re.compile(r"\[([0-9 ]+)\]")
_BESIDE = 76
"""Columns from which on both drawings stand beside each other."""


def draw_fault(task: Task, fault: Fault, picture: str, width: int) -> RenderableType:
    """Two panels; what the action changes stands out.

    Args:
        picture: the name of the task's picture; it needs a sketch.
        width: columns of the terminal.
    """
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel

    ansi: Any = import_module("safetest_gym.envs.rendering.ansi")
    scene = import_module("safetest_gym.envs.rendering").Scene(variables=task.variables)
    states = fault.state, fault.outcome
    before, after = (ansi.sketch(task.as_dict(state), scene, picture) for state in states)
    end = "failing state" if task.is_failing(fault.outcome) else "unsafe state"
    action = task.actions[fault.action]
    size = min(48, width // 2 - 2) if width >= _BESIDE else min(width, 60)
    panels = [
        Panel(_body(before, after), title="safe state", width=size, border_style="green"),
        Panel(
            _body(after, before),
            title=f"after {action}",
            subtitle=end,
            width=size,
            border_style="red",
        ),
    ]
    return Columns(panels) if width >= _BESIDE else Group(*panels)


def _body(lines: Sequence[str], others: Sequence[str]) -> Group:
    from rich.console import Group

    pairs = zip_longest(lines, others, fillvalue="")
    return Group(*(_line(line, bold=line != other) for line, other in pairs))


def _line(line: str, *, bold: bool) -> Text:
    """Numbers in brackets become coloured tokens, empty brackets pale."""
    from rich.text import Text

    text = Text(no_wrap=True, style="bold" if bold else "dim")
    text.append("▸" if bold else " ")
    place = 0
    for token in _TOKEN.finditer(line):
        text.append(line[place : token.start()])
        number = token[1].strip()
        color = f"not dim bold white on {_COLORS[int(number) % len(_COLORS)]}" if number else "dim"
        text.append(f" {number} " if number else "[ ]", color)
        place = token.end()
    text.append(line[place:])
    return text
