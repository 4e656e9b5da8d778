from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetest_gym.reports.sources import read_sources
from safetest_gym.reports.summary import Row, open_faults, summary_tables
from tests.reports.folders import Case, write_demo


def test_a_loop_comes_before_tests_and_trainings(case: Case, tmp_path: Path) -> None:
    tables = summary_tables(read_sources(write_demo(tmp_path / "demo", case)), [])
    assert [table.title for table in tables] == [
        "Debugging loop (loop)",
        "Training with safety tests (tests)",
        "Training (training)",
    ]
    assert tables[0].before == Row("policy as given", 0.5, 0.25, 4)
    assert tables[0].after == Row("policy after 1 repair", 0.0, 0.25, 1, "UNKNOWN")


def test_results_of_the_folders_author_come_first(case: Case, tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", case)
    rows = [{"name": "trained", "unsafe_rate": 1.0}, {"name": "repaired", "verdict": "safe"}]
    results = {"title": "Demo", "rows": rows}
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    table = summary_tables(read_sources(folder), [])[0]
    assert table.rows == [Row("trained", 1.0), Row("repaired", verdict="SAFE")]


def test_a_repaired_policys_open_faults_are_those_left_and_those_new() -> None:
    entries: list[dict[str, Any]] = [
        {"repair": {"fixed": 1}, "faults_new": 5, "faults_open": 2},
        {"repair": {"fixed": 1}, "faults_new": 3, "faults_open": 1},
        {"repair": None, "faults_new": 0, "faults_open": 1},
    ]
    assert [open_faults(entries, entry) for entry in entries] == [5, 5, 1]
