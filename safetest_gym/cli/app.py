"""The ``safetest-gym`` command line.

Commands import what they need when they run, so that ``--help`` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

from safetest_gym import __version__
from safetest_gym.cli.bench import bench
from safetest_gym.cli.bugs import bugs
from safetest_gym.cli.decide import decide
from safetest_gym.cli.demo import demo
from safetest_gym.cli.distil import distil
from safetest_gym.cli.doctor import doctor
from safetest_gym.cli.evaluate import evaluate
from safetest_gym.cli.explore import explore
from safetest_gym.cli.export import export
from safetest_gym.cli.faults import faults
from safetest_gym.cli.fuzz import fuzz
from safetest_gym.cli.info import info
from safetest_gym.cli.options import join_constants
from safetest_gym.cli.pipeline import pipeline
from safetest_gym.cli.repair import repair
from safetest_gym.cli.report import report
from safetest_gym.cli.reporting import Exit, reports_errors
from safetest_gym.cli.tasks import tasks
from safetest_gym.cli.train import train
from safetest_gym.cli.verify import verify

__all__ = ["app", "main"]

app = typer.Typer(
    name="safetest-gym",
    help="Train, test, shield, repair and verify policies of JANI planning tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Begin": {"demo": demo, "doctor": doctor},
    "Models": {"info": info, "explore": explore, "decide": decide, "export": export},
    "Policies": {"train": train, "distil": distil, "evaluate": evaluate},
    "Tests": {"test": pipeline, "fuzz": fuzz, "bugs": bugs, "faults": faults},
    "Repair and proof": {"repair": repair, "verify": verify, "report": report},
    "Experiments": {"bench": bench},
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(reports_errors(_command))
app.add_typer(tasks, name="tasks", rich_help_panel="Models")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"safetest-gym {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command as a whole."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks ∧ or … is no error
    given = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=join_constants(given), prog_name="safetest-gym")
    except KeyboardInterrupt:  # before a command has begun
        print("interrupted", file=sys.stderr)
        sys.exit(Exit.INTERRUPTED)
