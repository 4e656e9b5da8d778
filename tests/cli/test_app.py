from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from safetest_gym import __version__
from safetest_gym.cli.app import app
from tests.cli.conftest import Run


def test_help_lists_the_commands(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert "explore" in ended.out
    assert "info" in ended.out


def test_the_version_is_the_package_s(run: Run) -> None:
    assert run("--version").out == f"safetest-gym {__version__}\n"


def _options(command: Any) -> Iterator[set[str]]:
    """The spellings of each option, of subcommands, too."""
    for parameter in command.params:
        yield set(parameter.opts)
    for part in getattr(command, "commands", {}).values():
        yield from _options(part)


def test_every_command_calls_the_place_of_its_results_out() -> None:
    options = list(_options(get_command(app)))
    assert sum("--out" in names for names in options) > 5
    assert all(names == {"-o", "--out"} for names in options if names & {"-o", "--out"})
    assert not any("--output" in names for names in options)


@pytest.mark.parametrize("arguments", [["fly"], ["--fly"], ["info"], ["explore", "a", "b"]])
def test_wrong_usage_ends_with_2_and_says_so_on_standard_error(
    run: Run, arguments: list[str]
) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "Error" in ended.err


def test_an_interrupt_before_a_command_begins_is_an_interrupt_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("safetest_gym.cli.app.app", interrupted)
    ended = run("--version")
    assert (ended.code, ended.err) == (130, "interrupted\n")


def test_a_terminal_that_lacks_a_character_gets_another_one() -> None:
    command = [sys.executable, "-m", "safetest_gym", "info", "OneWayLine"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, check=True, env=plain)
    assert b"failure: " in done.stdout
    assert b" ? " in done.stdout
    assert done.stdout.isascii()


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "safetest_gym", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"safetest-gym {__version__}\n"
