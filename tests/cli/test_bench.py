from __future__ import annotations

import json
from pathlib import Path

from safetest_gym.bench import EXPERIMENTS
from tests.cli.conftest import Run


def test_without_a_name_the_experiments_are_listed(run: Run) -> None:
    found = json.loads(run("bench", "--json").out)["experiments"]
    assert list(found) == [name.replace("_", "-") for name in EXPERIMENTS]


def test_an_unknown_experiment_is_told(run: Run, tmp_path: Path) -> None:
    ended = run("bench", "fuzz", "-o", tmp_path)
    assert ended.code == 2
    assert "did you mean 'fuzzing'?" in ended.err


def test_a_folder_with_something_else_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").write_text("hello\n", encoding="utf-8")
    ended = run("bench", "speed", "--quick", "-o", tmp_path)
    assert ended.code == 2
    assert "line 1 is no measured cell" in ended.err
