from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import StoreError
from safetest_gym.faults import (
    Fault,
    read_csv,
    read_jsonl,
    write_csv,
    write_jsonl,
    write_start_states,
)
from safetest_gym.task import Task, load_task


@pytest.fixture(scope="module")
def task(data: Path) -> Task:
    return load_task(data / "glider.jani", failure="height <= 0")


def faults() -> list[Fault]:
    first = Fault(np.array([0.1 + 0.2, 2.0]), 0, np.array([-1 / 3, 2.0]), (1,), 4, 1, Verdict.SAFE)
    return [first, Fault(np.array([1.0, 3.0]), 1, np.array([0.0, 3.0]), (), radius=2.0)]


STATE = {"height": 1.0, "flown": 2.0}


def plain(fault: Fault, task: Task) -> dict[str, Any]:
    return fault.as_dict(task)


@pytest.mark.parametrize(("write", "read"), [(write_jsonl, read_jsonl), (write_csv, read_csv)])
def test_faults_survive_a_file(
    write: Callable[..., None], read: Callable[..., list[Fault]], tmp_path: Path, task: Task
) -> None:
    write(tmp_path / "f", task, faults())
    found = read(tmp_path / "f", task)
    assert [plain(f, task) for f in found] == [plain(f, task) for f in faults()]


def test_start_states_are_read_back_by_the_task(tmp_path: Path, task: Task, data: Path) -> None:
    path = tmp_path / "starts.json"
    write_start_states(path, task, faults())
    again = load_task(data / "glider.jani", failure="height <= 0", start=path)
    assert again.initial.enumerate(10).tolist() == [f.state.tolist() for f in faults()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1"),
        ("[]", r"f\.jsonl, line 1: expected an object"),
        (json.dumps({"task": "other"}), "another task"),
        (json.dumps({"state": {}}), "line 1.*not a state"),
        (json.dumps({"state": STATE}), "line 1.*no 'action' is known"),
        (json.dumps({"state": STATE, "action": 0}), "line 1.*no 0 is known"),
    ],
)
def test_wrong_lines_are_named(line: str, message: str, tmp_path: Path, task: Task) -> None:
    (tmp_path / "f.jsonl").write_text(line + "\n")
    with pytest.raises(StoreError, match=message):
        read_jsonl(tmp_path / "f.jsonl", task)


def test_wrong_rows_are_named(tmp_path: Path, task: Task) -> None:
    write_csv(tmp_path / "f.csv", task, faults())
    lines = (tmp_path / "f.csv").read_text().splitlines()
    (tmp_path / "f.csv").write_text("\n".join([*lines, "dive,1,2"]))
    with pytest.raises(StoreError, match="line 4"):
        read_csv(tmp_path / "f.csv", task)


def test_a_table_without_its_head_is_refused(tmp_path: Path, task: Task) -> None:
    write_csv(tmp_path / "f.csv", task, faults())
    lines = (tmp_path / "f.csv").read_text().splitlines()
    for kept in ([], lines[1:]):
        (tmp_path / "f.csv").write_text("\n".join(kept))
        with pytest.raises(StoreError, match="no column action, alternatives"):
            read_csv(tmp_path / "f.csv", task)


def test_a_table_of_another_task_is_refused(tmp_path: Path, task: Task, data: Path) -> None:
    write_csv(tmp_path / "f.csv", task, faults())
    twin = load_task(data / "glider.jani", failure="height <= 1")
    with pytest.raises(StoreError, match="line 2: a fault of another task"):
        read_csv(tmp_path / "f.csv", twin)


@pytest.mark.parametrize("read", [read_jsonl, read_csv])
def test_a_file_that_is_no_text_is_named(
    read: Callable[..., list[Fault]], tmp_path: Path, task: Task
) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoreError, match="holds no faults"):
        read(tmp_path / "f", task)
