"""``safetest-gym explore``: build and count the whole state space."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    open_task,
)
from safetest_gym.cli.reporting import Exit, print_error, print_json, print_table

if TYPE_CHECKING:
    from safetest_gym.engine.explore import Explorer

__all__ = ["explore", "peak_megabytes"]

_REFRESH_SECONDS = 0.1


class _Progress(Protocol):
    def __call__(self, states: int, frontier: int, /) -> None: ...


def explore(
    model: ModelFile,
    constants: Constants = None,
    properties: PropertiesFile = None,
    choice: PropertyChoice = None,
    starts: Annotated[
        Literal["default", "all"],
        typer.Option(help="The model's initial states, or all the property's start states."),
    ] = "default",
    mode: Annotated[
        Literal["edge", "label"],
        typer.Option(help="What a choice is: an edge, or a label with all its enabled edges."),
    ] = "label",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop, with exit code 3, at this many states.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build the state space and count it."""
    task = open_task(model, properties, choice, constants, mode)
    from safetest_gym.engine.explore import MAX_STATES, Explorer

    explorer = Explorer(task, starts=starts, mode=mode)
    with _progress(limit) as progress:
        before = time.process_time()
        most = MAX_STATES if limit is None else limit
        finished = explorer.run(most, progress)
        seconds = time.process_time() - before
    result = _result(explorer, seconds)
    if as_json:
        print_json(result)
    else:
        print_table(task.name, result)
    if not finished:
        print_error(f"stopped at the limit of {most:,} states; the counts are of a part")
        raise typer.Exit(Exit.LIMIT)


def peak_megabytes() -> float | None:
    """The most memory this process ever held, where the system tells.

    Linux' own ``ru_maxrss`` begins with what the parent held when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
        if peak:
            return round(int(peak[1]) / 2**10, 1)
    try:
        import resource
    except ImportError:  # Windows
        return None
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 1)  # macOS: bytes


def _result(explorer: Explorer, seconds: float) -> dict[str, Any]:
    counts = explorer.counts()
    result: dict[str, Any] = {
        "states": counts.states,
        "choices": counts.choices,
        "transitions": counts.transitions,
        "deadlocks": counts.deadlocks,
        "initial_states": counts.initial_states,
    }
    if counts.failing is not None:
        result["failing"] = counts.failing
    if counts.goal is not None:
        result["goal"] = counts.goal
    result["seconds"] = round(seconds, 6)
    result["peak_mb"] = peak_megabytes()
    return result


@contextmanager
def _progress(limit: int | None) -> Iterator[_Progress]:
    """Show the number of states on standard error while inside."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,} states, {task.fields[frontier]:,} to expand"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,  # a thread's time would count as the exploration's
        disable=not console.is_terminal,
    )
    due = 0.0

    def show(states: int, frontier: int, /) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + _REFRESH_SECONDS
            bar.update(row, completed=states, frontier=frontier, refresh=True)

    with bar:
        row = bar.add_task("", total=limit, frontier=0)
        yield show
