"""``safetest-gym demo``: the whole package at work on a bundled task."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safetest_gym.cli.fault_drawing import draw_fault
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from safetest_gym.faults import Fault
    from safetest_gym.task import Task

__all__ = ["demo"]

_STORY = (
    "[bold]Jigs leave an aeroplane in one order and a factory asks for them in another; chance "
    "decides which line asks next.[/bold] They wait on racks, but only so many moves are allowed."
)
_SHOWN = 3
"""Faults that are shown."""

_INDENT = 3


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="New folder.", show_default="safetest-demo[-N]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same training; repairs stop by the clock.")
    ] = 0,
) -> None:
    """Train, test, shield, repair and verify a policy, and write a report."""
    folder = _new_folder() if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; give a new folder with --out")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console, shown = Console(highlight=False), Console(stderr=True)
    bar = Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=shown,
        transient=True,
        redirect_stdout=console.is_terminal,  # into a file it must not go to this console
        disable=not shown.is_terminal,
    )
    console.print(_STORY, soft_wrap=not console.is_terminal)
    with bar:
        bar.add_task("loading", total=None)
        import torch

        torch.set_num_threads(1)  # small networks are slower with more
        module: Any = import_module("safetest_gym.callbacks.demonstration")
        watch = _Watch(console, bar)
        result = module.demonstrate(folder, watch, module.DemoPlan(seed=seed))
    _print_table(console, result.rows)
    console.print(f"report: {result.report}", soft_wrap=True)


def _new_folder() -> Path:
    """The first of safetest-demo, safetest-demo-2, … that is not there."""
    number, folder = 1, Path("safetest-demo")
    while folder.exists():
        number += 1
        folder = Path(f"safetest-demo-{number}")
    return folder


class _Watch:
    """Stages as lines on standard output, progress as a bar."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console, self._bar = console, bar
        self._number = 0

    def stage(self, text: str) -> None:
        self._number += 1
        self._console.print(f"\n[bold]{self._number}. {text}[/bold]")
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._row = self._bar.add_task("working", total=1.0)

    def progress(self, done: float) -> None:
        self._bar.update(self._row, completed=done)

    def faults(self, task: Task, faults: tuple[Fault, ...]) -> None:
        from rich.padding import Padding

        console = self._console
        self._say(f"{len(faults)} faults; the first of them:")
        for fault in faults[:_SHOWN]:
            self._say(f"- {fault.describe(task)}")
        if faults and _shows_drawings(console):
            self._say("The first as a drawing:")
            drawing = draw_fault(task, faults[0], "beluga", console.width - _INDENT)
            console.print(Padding(drawing, (0, 0, 1, _INDENT)))

    def row(self, row: Any) -> None:
        self._say(
            f"{row.name}: {_percent(row.unsafe_rate)} of starts unsafe, goal "
            f"{_percent(row.goal_rate)}, {row.faults} known faults; proof: {_proof(row)}"
        )

    def _say(self, text: str) -> None:
        """A line below the stage's title; one line in a file, wrapped in a terminal."""
        from rich.text import Text

        if self._console.is_terminal:
            hanging = _INDENT + (2 if text.startswith("- ") else 0)
            first, *rest = Text(text).wrap(self._console, self._console.width - hanging)
            lines = [Text(" " * _INDENT) + first, *(Text(" " * hanging) + line for line in rest)]
            self._console.print(Text("\n").join(lines))
        else:
            self._console.print(f"{' ' * _INDENT}{text}", markup=False, soft_wrap=True)


def _shows_drawings(console: Console) -> bool:
    """Is it a terminal that knows more than ASCII?"""
    return console.is_terminal and console.encoding.startswith("utf")


def _print_table(console: Console, rows: tuple[Any, ...]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="Before and after", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("policy")
    for name in ("%Unsafe", "%Goal", "faults"):
        table.add_column(name, justify="right")
    table.add_column("proof, all starts")
    for row in rows:
        table.add_row(
            row.name,
            _percent(row.unsafe_rate),
            _percent(row.goal_rate),
            str(row.faults),
            _proof(row),
        )
    console.print("\n", table, sep="")


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _proof(row: Any) -> str:
    if row.proof == "safe":
        return f"safe ({row.proved_states:,} states)"
    return "unsafe" if row.proof == "unsafe" else "not decided"
