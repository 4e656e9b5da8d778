"""The ``safetest-gym`` command line.

Commands import what they need when they run, so that ``--help`` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from safetest_gym import __version__
from safetest_gym.cli.explore import explore
from safetest_gym.cli.info import info
from safetest_gym.cli.options import join_constants
from safetest_gym.cli.reporting import reports_errors

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
