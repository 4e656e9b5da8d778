from __future__ import annotations

import pytest
import typer

from safetest_gym.cli.reporting import reports_errors
from safetest_gym.errors import ConfigError, JaniError, JaniErrorGroup, LimitError


def _end_of(error: BaseException) -> int:
    @reports_errors
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as end:
        command()
    return int(end.value.exit_code)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("a bad option"), 2),
        (JaniError("a bad guard", path="$.automata[0]"), 2),
        (FileNotFoundError(2, "No such file or directory", "m.jani"), 2),
        (LimitError("1000 states were reached"), 3),
        (MemoryError(), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_end_has_its_exit_code(error: BaseException, code: int) -> None:
    assert _end_of(error) == code


def test_every_error_of_a_document_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [
        JaniError("unknown operator '=>'", path="$.a", hint="did you mean '⇒'?"),
        JaniError("no such variable 'y'", path="$.b"),
    ]
    _end_of(JaniErrorGroup("2 errors", errors))
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines() == [
        "error: unknown operator '=>' at $.a (did you mean '⇒'?)",
        "error: no such variable 'y' at $.b",
    ]


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _end_of(FileNotFoundError(2, "No such file or directory", "m.jani"))
    assert capsys.readouterr().err == "error: m.jani: No such file or directory\n"


def test_a_defect_of_ours_is_not_hidden() -> None:
    @reports_errors
    def command() -> None:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        command()
