from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.errors import StoreError
from safetest_gym.reports.sources import read_sources
from tests.reports.folders import Case, write_demo, write_repairs, write_tests, write_training


def test_folders_are_found_two_levels_down_and_not_deeper(case: Case, tmp_path: Path) -> None:
    write_training(tmp_path / "one" / "two", case)
    write_training(tmp_path / "one" / "two" / "three", case)
    assert [found.name for found in read_sources(tmp_path).trainings] == ["one/two"]


def test_every_kind_of_folder_is_found(case: Case, tmp_path: Path) -> None:
    found = read_sources(write_demo(tmp_path / "demo", case))
    assert [len(kind) for kind in (found.tests, found.trainings, found.loops)] == [1, 1, 1]
    assert [found.name_of(store) for store in found.stores] == [
        "loop/faults.db",
        "tests/faults.sqlite",
    ]


def test_a_line_that_a_kill_cut_short_is_left_out(case: Case, tmp_path: Path) -> None:
    write_tests(tmp_path / "tests", case)
    path = tmp_path / "tests" / "safety.jsonl"
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    assert len(read_sources(tmp_path).tests[0].records) == 2


def test_repairs_are_found_beside_the_tests(case: Case, tmp_path: Path) -> None:
    write_tests(tmp_path / "tests", case)
    write_repairs(tmp_path / "tests", case)
    path = tmp_path / "tests" / "repair.jsonl"
    assert len(read_sources(tmp_path).tests[0].repairs) == 4
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    assert len(read_sources(tmp_path).tests[0].repairs) == 3
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"repair\.jsonl, line 1 is no record of a repair"):
        read_sources(tmp_path)


def test_a_broken_line_is_an_error_with_its_number(case: Case, tmp_path: Path) -> None:
    write_tests(tmp_path / "tests", case)
    path = tmp_path / "tests" / "safety.jsonl"
    path.write_text("{}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(StoreError, match="line 1 is no record"):
        read_sources(tmp_path)


def test_a_run_that_goes_on_is_read_from_its_checkpoint(case: Case, tmp_path: Path) -> None:
    write_training(tmp_path / "run", case)
    (tmp_path / "run" / "summary.json").unlink()
    for steps in (900, 1000):
        folder = tmp_path / "run" / "checkpoints" / str(steps)
        folder.mkdir(parents=True)
        history = [{"steps": steps, "goal_rate": 0.5, "failure_rate": 0.0}]
        (folder / "progress.json").write_text(json.dumps({"history": history}), encoding="utf-8")
    (training,) = read_sources(tmp_path).trainings
    assert training.history[0]["steps"] == 1000
    assert training.evaluation is None


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_loop_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "loop.json").write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"loop\.json"):
        read_sources(tmp_path)


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no folder"):
        read_sources(tmp_path / "absent")
