from __future__ import annotations

import math

import pytest
import typer

from safetest_gym.cli.reporting import print_json, print_table, reports_errors
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


def test_a_table_shows_what_there_is_as_people_write_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {"run": ["go", "stop"], "reason": "", "proof": None, "known_states": 1200}
    print_table("a task", rows)
    lines = [line.strip("│ ").split("│") for line in capsys.readouterr().out.splitlines()[2:-1]]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert cells == [
        ["run", "go, stop"],
        ["reason", "–"],
        ["proof", "–"],
        ["known states", "1,200"],
    ]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (PermissionError, "give a place where you may read and write"),
        (FileExistsError, "a file is in the way of a folder; give another name"),
        (IsADirectoryError, "it is a folder; give the name of a file"),
    ],
)
def test_what_the_system_refuses_comes_with_a_hint(
    error: type[OSError], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _end_of(error(1, "Refused", "out"))
    assert capsys.readouterr().err == f"error: out: Refused ({hint})\n"


def test_a_defect_of_ours_is_told_whole_and_does_not_look_like_a_finding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _end_of(RuntimeError("a defect")) == 70
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "RuntimeError: a defect" in told
    assert told.endswith("please report it\n")


@pytest.mark.parametrize("end", [typer.Exit(1), typer.Abort(), typer.BadParameter("no")])
def test_what_typer_raises_is_left_to_it(end: Exception) -> None:
    @reports_errors
    def command() -> None:
        raise end

    with pytest.raises(type(end)):
        command()


def test_json_has_no_numbers_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"gap": math.inf, "rows": [{"rate": math.nan}, (1, 0.5)]})
    assert capsys.readouterr().out == '{"gap": null, "rows": [{"rate": null}, [1, 0.5]]}\n'
