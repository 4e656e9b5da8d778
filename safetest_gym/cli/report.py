"""``safetest-gym report``: one HTML file about a training, a test or a debugging loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.options import (
    Constants,
    PropertiesFile,
    PropertyChoice,
    check_output,
    open_subject,
)
from safetest_gym.cli.testing import Mode

if TYPE_CHECKING:
    from safetest_gym.reports.setting import Setting

__all__ = ["report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of a training, of a safety-testing callback, of a debugging loop, or "
            "one that holds several of them.",
            show_default=False,
        ),
    ]
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="HTML file.", show_default="DIR/report.html"
        ),
    ] = None
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="The task, if it is neither a bundled one as it comes nor named by task.json.",
        ),
    ] = None
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    constants: Constants = None
    mode: Mode = "label"
    faults: Annotated[int, typer.Option(min=0, help="Faults shown with pictures.")] = 8
    runs: Annotated[
        int,
        typer.Option(
            min=0, help="Runs of each fuzzing strategy and policy; 0 loads and runs no policy."
        ),
    ] = 200


@takes(_Options)
def report(options: _Options) -> None:
    """Write one self-contained HTML file about a folder; it works without a network."""
    from safetest_gym.reports import ReportConfig, write_report

    check_output("--out", options.out)
    config = ReportConfig(faults=options.faults, runs=options.runs)
    with _status() as tell:
        path = write_report(
            options.directory, options.out, setting=_setting(options), config=config, tell=tell
        )
    print(path)
    if options.show:
        typer.launch(path.resolve().as_uri())


def _setting(options: _Options) -> Setting | None:
    if options.model is None:
        return None
    subject = open_subject(
        options.model, options.properties, options.choice, options.constants, options.mode
    )
    from safetest_gym.reports.setting import setting_of

    return setting_of(subject.task, subject.generator)


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """Say on standard error what is being done, if that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("", spinner="dots") as status:
        yield lambda text: status.update(f"{text} …")
