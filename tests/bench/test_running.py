from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from safetest_gym.bench.experiment import (
    EXPERIMENTS,
    Cell,
    Experiment,
    Facts,
    Findings,
    Row,
    Setting,
    Table,
    find_experiment,
)
from safetest_gym.bench.figures import BarFigure
from safetest_gym.bench.running import run_experiment
from safetest_gym.errors import ConfigError


class Counting:
    """An experiment that counts what it measures, and may be interrupted."""

    def __init__(self, interrupted_at: int = -1) -> None:
        self.measured: list[int] = []
        self._interrupted_at = interrupted_at

    def measure(self, cell: Cell, folder: Path) -> Facts:
        if cell["number"] == self._interrupted_at:
            raise KeyboardInterrupt
        self.measured.append(cell["number"])
        return {"square": cell["number"] ** 2, "by": {"seed": cell["seed"]}}

    @property
    def experiment(self) -> Experiment:
        return Experiment(name="fuzzing", plan=_plan, measure=self.measure, present=_present)


def _plan(setting: Setting) -> list[Cell]:
    return [{"number": n, "seed": setting.seed} for n in range(2 if setting.quick else 4)]


def _present(rows: Sequence[Row]) -> Findings:
    squares = [str(row.facts["square"]) for row in rows if row.facts]
    figure = BarFigure(title="Squares", y_name="", groups=[], series={})
    table = Table("Squares", ["all"], [squares])
    return Findings(tables=[table], figures={"squares": figure}, notes=["a note"])


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    first, second = Counting(interrupted_at=2), Counting()
    with pytest.raises(KeyboardInterrupt):
        run_experiment(first.experiment, tmp_path, Setting())
    findings = run_experiment(second.experiment, tmp_path, Setting())
    assert (first.measured, second.measured) == ([0, 1], [2, 3])
    assert findings.tables[0].rows == [["0", "1", "4", "9"]]


def test_another_seed_measures_anew_in_the_same_folder(tmp_path: Path) -> None:
    run_experiment(Counting().experiment, tmp_path, Setting(quick=True))
    other = Counting()
    run_experiment(other.experiment, tmp_path, Setting(quick=True, seed=1))
    assert other.measured == [0, 1]


def test_results_name_the_command_the_seed_and_the_machine(tmp_path: Path) -> None:
    command = ["safetest-gym", "bench", "fuzzing", "-o", "my results"]
    run_experiment(Counting().experiment, tmp_path, Setting(), command=command)
    text = (tmp_path / "fuzzing.md").read_text("utf-8")
    for part in ("safetest-gym bench fuzzing -o 'my results'", "seed 0", "processors", "a note"):
        assert part in text


def test_figures_are_files_that_the_results_show(tmp_path: Path) -> None:
    run_experiment(Counting().experiment, tmp_path, Setting())
    assert "(fuzzing-squares.svg)" in (tmp_path / "fuzzing.md").read_text("utf-8")
    assert (tmp_path / "fuzzing-squares.svg").read_text("utf-8").startswith("<svg")


def test_the_csv_has_a_line_per_cell_with_nested_facts_flat(tmp_path: Path) -> None:
    run_experiment(Counting().experiment, tmp_path, Setting(quick=True))
    with (tmp_path / "fuzzing.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert lines[1] == {"number": "1", "seed": "0", "square": "1", "by.seed": "0"}


def test_progress_is_told_before_each_cell_and_in_the_end(tmp_path: Path) -> None:
    told: list[int] = []
    run_experiment(
        Counting().experiment,
        tmp_path,
        Setting(quick=True),
        watch=lambda done, text, /: told.append(done),
    )
    assert told == [0, 1, 2]


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_cells_are_different_plain_data_and_nothing_measured_can_be_shown(
    name: str, quick: bool
) -> None:
    import json

    experiment = find_experiment(name)
    plan = experiment.plan(Setting(quick=quick))
    assert len({json.dumps(cell, sort_keys=True) for cell in plan}) == len(plan) > 0
    assert json.loads(json.dumps(plan)) == plan
    for figure in experiment.present([]).figures.values():
        assert "<svg" in figure.svg()


def test_an_experiment_that_is_missing_is_told_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'policy-testing'"):
        find_experiment("policytesting")
