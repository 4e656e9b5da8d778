from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from tests.cli.conftest import Run
from tests.reports.folders import make_case, write_demo, write_training


def test_the_path_of_the_report_is_printed(run: Run, tmp_path: Path) -> None:
    write_training(tmp_path / "run", make_case())
    ended = run("report", tmp_path / "run", "--runs", 0)
    assert ended.code == 0
    assert ended.out == f"{tmp_path / 'run' / 'report.html'}\n"
    assert ended.err == ""
    assert (tmp_path / "run" / "report.html").exists()


def test_the_model_can_be_given_like_to_other_commands(run: Run, tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", make_case(FlappyBird(height=9)))
    out = tmp_path / "page.html"
    options = ("--model", "FlappyBird", "--const", "height=9", "--runs", 0, "--faults", 1)
    assert run("report", folder, "-o", out, *options).code == 0
    assert "data:image/png" in out.read_text(encoding="utf-8")


def test_an_empty_folder_is_bad_input(run: Run, tmp_path: Path) -> None:
    ended = run("report", tmp_path)
    assert ended.code == 2
    assert "nothing to report" in ended.err


def test_open_shows_the_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("typer.launch", shown.append)
    write_training(tmp_path / "run", make_case())
    run("report", tmp_path / "run", "--runs", 0, "--open")
    assert shown == [(tmp_path / "run" / "report.html").as_uri()]
