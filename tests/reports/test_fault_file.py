from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from safetest_gym.errors import StoreError
from safetest_gym.faults import FaultStore
from safetest_gym.reports.fault_file import read_faults
from tests.reports.folders import Case, write_store


def test_faults_are_read_as_they_were_stored(case: Case, tmp_path: Path) -> None:
    write_store(tmp_path / "faults.db", case)
    (found,) = read_faults(tmp_path / "faults.db", "faults.db")
    assert found.digest == case.task.digest
    stored = {(tuple(row.state), row.action, tuple(row.alternatives)) for row in found.faults}
    assert stored == {
        (
            tuple(fault.state.tolist()),
            case.task.actions[fault.action],
            tuple(case.task.actions[a] for a in fault.alternatives),
        )
        for fault in case.faults
    }
    assert found.faults[0].history == (("found", "1000"),)


def test_open_faults_come_before_fixed_ones(case: Case, tmp_path: Path) -> None:
    write_store(tmp_path / "faults.db", case)
    with FaultStore(tmp_path / "faults.db") as store:
        fixed, open_ = store.update(case.task, case.other, "2000")
    (found,) = read_faults(tmp_path / "faults.db", "faults.db")
    assert [row.fixed for row in found.faults] == [False] * open_ + [True] * fixed
    assert found.open == open_


def test_reading_leaves_the_file_as_it_is(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "faults.db"
    write_store(path, case)
    before = path.read_bytes()
    read_faults(path, "faults.db")
    assert path.read_bytes() == before


def test_a_store_that_is_being_written_can_be_read(case: Case, tmp_path: Path) -> None:
    with FaultStore(tmp_path / "faults.db") as store:
        store.add(case.task, case.faults)
        (found,) = read_faults(tmp_path / "faults.db", "faults.db")
    assert len(found.faults) == len(case.faults)


def test_another_programs_database_is_passed_over(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE things (name TEXT)")
    connection.close()
    assert read_faults(tmp_path / "other.db", "other.db") == []


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"nothing of the kind" * 99)
    with pytest.raises(StoreError, match="cannot be read as a fault store"):
        read_faults(tmp_path / "x.db", "x.db")
