from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.bench.timing import stopwatch
from tests.benchmarks.harness import Report, Runner

MODULE = "tests.benchmarks.speed_engine"


def test_a_work_runs_in_a_process_of_its_own_and_returns_its_facts(data: Path) -> None:
    facts = Runner(MODULE).run("storm", model=str(data / "die.jani"))
    assert facts is not None
    assert facts["states"] == 13
    assert facts["peak_mb"] > 1


def test_a_work_that_does_not_end_within_the_cap_has_no_facts(data: Path) -> None:
    assert Runner(MODULE, cap_seconds=0.001).run("storm", model=str(data / "die.jani")) is None


def test_a_work_that_fails_is_told_with_its_errors() -> None:
    with pytest.raises(RuntimeError, match=r"missing\.jani"):
        Runner(MODULE).run("storm", model="missing.jani")


def test_the_stopwatch_measures_work() -> None:
    with stopwatch() as watch:
        sum(range(1_000_000))
    assert watch.seconds > 0


def test_a_report_tells_which_targets_were_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("line")
    report.add("quick", "1 s", ratio=6.0, target=5)
    report.add("slow", "9 s", ratio=4.0, target=5)
    report.show()
    shown = capsys.readouterr().out
    assert "yes" in shown
    assert "NO" in shown
    report.write(tmp_path / "report.json")
    rows = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["rows"]
    assert [row["ratio"] for row in rows] == [6.0, 4.0]
