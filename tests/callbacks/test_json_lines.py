from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.callbacks.json_lines import JsonLines
from safetest_gym.errors import StoreError
from safetest_gym.task import Task, load_task
from tests.callbacks.conftest import LINE


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task({**LINE.model(), "properties": LINE.properties()})


def test_what_was_added_is_read_again(task: Task, tmp_path: Path) -> None:
    for number in range(3):
        JsonLines(tmp_path / "a.jsonl", task).add({"number": number})
    assert JsonLines(tmp_path / "a.jsonl", task).resumed() == [{"number": n} for n in range(3)]


def test_a_line_that_a_kill_cut_short_is_dropped_from_the_file(task: Task, tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "a.jsonl", task)
    lines.add({"number": 0})
    lines.add({"number": 1})
    lines.path.write_text(lines.path.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    assert lines.resumed() == [{"number": 0}]
    lines.add({"number": 2})
    assert lines.resumed() == [{"number": 0}, {"number": 2}]


def test_without_a_file_there_is_nothing(task: Task, tmp_path: Path) -> None:
    assert JsonLines(tmp_path / "a.jsonl", task).resumed() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", "{}", "3"])
def test_a_broken_line_is_an_error_that_names_it(task: Task, tmp_path: Path, text: str) -> None:
    lines = JsonLines(tmp_path / "a.jsonl", task)
    lines.add({"number": 0})
    with lines.path.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    with pytest.raises(StoreError, match=r"a\.jsonl, line 2 is no record; mend or remove it"):
        lines.resumed()


def test_records_of_another_task_are_refused(task: Task, tmp_path: Path) -> None:
    other = load_task({**LINE.model(), "properties": LINE.properties()}, action_mode="edge")
    JsonLines(tmp_path / "a.jsonl", other).add({})
    with pytest.raises(StoreError, match="another task than"):
        JsonLines(tmp_path / "a.jsonl", task).resumed()
