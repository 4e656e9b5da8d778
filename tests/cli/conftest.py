"""Run commands as a user does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from safetest_gym.cli.app import main


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line with arguments in this process."""

    def run_command(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Ended(int(end.value.code or 0), written.out, written.err)

    return run_command
