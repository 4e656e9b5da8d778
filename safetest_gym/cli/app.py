"""The ``safetest-gym`` command line.

Commands import what they need when they run, so that ``--help`` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from safetest_gym import __version__
from safetest_gym.cli.bugs import bugs
from safetest_gym.cli.decide import decide
from safetest_gym.cli.distil import distil
from safetest_gym.cli.evaluate import evaluate
from safetest_gym.cli.explore import explore
from safetest_gym.cli.export import export
from safetest_gym.cli.faults import faults
from safetest_gym.cli.fuzz import fuzz
from safetest_gym.cli.info import info
from safetest_gym.cli.options import join_constants
from safetest_gym.cli.pipeline import pipeline
from safetest_gym.cli.reporting import reports_errors
from safetest_gym.cli.tasks import tasks
from safetest_gym.cli.train import train

__all__ = ["app", "main"]

app = typer.Typer(
    name="safetest-gym",
    help="Look at, explore and test JANI planning tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(reports_errors(info))
app.command()(reports_errors(explore))
app.command()(reports_errors(decide))
app.command()(reports_errors(export))
app.command()(reports_errors(fuzz))
app.command()(reports_errors(bugs))
app.command()(reports_errors(faults))
app.command("test")(reports_errors(pipeline))
app.command()(reports_errors(train))
app.command()(reports_errors(evaluate))
app.command()(reports_errors(distil))
app.add_typer(tasks, name="tasks")


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
    given = sys.argv[1:] if arguments is None else arguments
    app(args=join_constants(given), prog_name="safetest-gym")
