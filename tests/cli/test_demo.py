"""How the demonstration is told; what it does is run by ``.ci/check``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from safetest_gym.callbacks import demonstration
from safetest_gym.callbacks.demonstration import DemoResult, DemoRow
from safetest_gym.cli.fault_drawing import draw_fault
from safetest_gym.envs.tasks.beluga import Beluga
from safetest_gym.faults import Fault
from safetest_gym.task import Task, load_task
from tests.cli.conftest import Run

ROW = DemoRow("as trained", 1.0, 0.5, 3, "unsafe", 0)
SAFE = DemoRow("… shielded by a decider", 0.0, 1.0, 0, "safe", 1266)


@pytest.fixture(scope="module")
def task() -> Task:
    generator = Beluga(jigs=3, racks=2)
    return load_task(generator.model(), {"properties": generator.properties()})


@pytest.fixture(scope="module")
def fault(task: Task) -> Fault:
    """What unloading an aeroplane looks like; that it is no fault does not matter here."""
    state = task.initial.sample(1, np.random.default_rng(0))[0]
    ((action, ((_, outcome), *_)), *_) = task.successors(state)
    return Fault(state, action, outcome, ())


@pytest.fixture
def shown(task: Task, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    def demonstrate(folder: Path, watch: Any, plan: Any) -> DemoResult:
        watch.stage("Training")
        watch.progress(0.5)
        watch.faults(task, (fault, fault, fault, fault))
        watch.row(ROW)
        return DemoResult((ROW, SAFE), folder / "report.html")

    monkeypatch.setattr(demonstration, "demonstrate", demonstrate)


@pytest.mark.usefixtures("shown")
def test_without_a_terminal_there_are_whole_lines_and_no_drawings(run: Run, tmp_path: Path) -> None:
    ended = run("demo", "--out", tmp_path / "demo")
    assert ended.code == 0
    assert ended.err == ""
    lines = ended.out.splitlines()
    assert "1. Training" in lines
    assert sum(line.startswith("   - ") for line in lines) == 3
    assert (
        "   as trained: 100.0 % of starts unsafe, goal 50.0 %, 3 known faults; proof: unsafe"
    ) in lines
    assert lines[-1] == f"report: {tmp_path / 'demo' / 'report.html'}"
    assert not set("\x1b╭▸") & set(ended.out)


@pytest.mark.usefixtures("shown")
def test_the_table_fits_into_80_columns(run: Run, tmp_path: Path) -> None:
    lines = run("demo", "--out", tmp_path / "demo").out.rstrip().splitlines()
    (row,) = [line for line in lines if line.startswith("  … shielded by a decider")]
    assert " ".join(row.split()) == "… shielded by a decider 0.0 % 100.0 % 0 safe (1,266 states)"
    assert "as trained" in lines[-4]
    assert all(len(line.rstrip()) <= 80 for line in lines[-8:-1])


def test_a_folder_with_something_in_it_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    ended = run("demo", "--out", tmp_path)
    assert ended.code == 2
    assert "is not empty; give a new folder with --out" in " ".join(ended.err.split())


def test_a_file_in_place_of_the_folder_is_told_before_anything_else(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").touch()
    ended = run("demo", "--out", tmp_path / "mine.txt")
    assert ended.code == 2
    assert ended.out == ""
    assert "a file is in the way of a folder" in ended.err


def _drawn(task: Task, fault: Fault, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as text:
        console.print(draw_fault(task, fault, "beluga", width))
    return [line.rstrip() for line in text.get().splitlines()]


def test_a_wide_terminal_shows_state_and_outcome_beside_each_other(
    task: Task, fault: Fault
) -> None:
    lines = _drawn(task, fault, 80)
    assert lines[0].count("╭") == 2
    assert "safe state" in lines[0]
    assert "after unload_beluga_0" in lines[0]
    (trailer,) = [line for line in lines if "trailer" in line]
    assert trailer.split() == ["│", "▸", "trailer", "[", "]", "│", "│", "▸", "trailer", "2", "│"]
    assert "unsafe state" in lines[-1]


def test_a_narrow_terminal_shows_them_below_each_other(task: Task, fault: Fault) -> None:
    lines = _drawn(task, fault, 50)
    assert all(len(line) <= 50 for line in lines)
    assert sum(line.startswith("╭") for line in lines) == 2


def test_values_that_stay_are_not_marked(task: Task, fault: Fault) -> None:
    (truck,) = [line for line in _drawn(task, fault, 80) if "truck" in line]
    assert "▸" not in truck
