from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.cli.policy_origin import note_other_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.task import Task, load_task


@pytest.fixture(scope="module")
def task() -> Task:
    line = OneWayLine(packages=1, locations=4)
    return load_task({**line.model(), "properties": line.properties()})


def test_a_policy_of_another_task_is_noted(
    task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_for = {"digest": "0", "task": "one_way_line_2_5"}
    (tmp_path / "run.json").write_text(json.dumps(made_for), encoding="utf-8")
    note_other_task(tmp_path / "model.zip", task)
    told = capsys.readouterr().err
    assert "was made for one_way_line_2_5, and this is one_way_line_1_4" in told
    assert "were options forgotten?" in told


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_policy_whose_origin_is_not_known_is_not(
    task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    note_other_task(tmp_path / "model.zip", task)
    assert capsys.readouterr().err == ""


def test_nor_one_of_the_same_task(
    task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_for = {"digest": task.digest, "task": task.name}
    (tmp_path / "loop.json").write_text(json.dumps(made_for), encoding="utf-8")
    note_other_task(tmp_path / "repaired.zip", task)
    assert capsys.readouterr().err == ""
