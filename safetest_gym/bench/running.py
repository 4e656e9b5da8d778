"""Run an experiment: measure what is missing, then write tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from safetest_gym.bench.cells import CellFile
from safetest_gym.bench.experiment import Experiment, Findings, Setting
from safetest_gym.bench.isolation import measure_apart
from safetest_gym.bench.writing import Record, write_findings

__all__ = ["BenchWatch", "run_experiment"]


class BenchWatch(Protocol):
    """Told before every cell and after the last one."""

    def __call__(self, done: int, text: str, /) -> None: ...


def _quiet(done: int, text: str, /) -> None:
    """Tell nobody."""


def run_experiment(
    experiment: Experiment,
    folder: Path,
    setting: Setting,
    *,
    store: Path | None = None,
    command: Sequence[str] = (),
    watch: BenchWatch = _quiet,
) -> Findings:
    """Measure the cells that the folder does not have yet, and write what they come to.

    Args:
        folder: gets ``cells.jsonl``, ``cells.csv``, ``NAME.md`` and the figures. The same one
            goes on where a run was ended; runs of different settings can share it.
        command: shown in the results.

    Raises:
        ConfigError: another run is at work in the folder.
    """
    from safetest_gym.callbacks.run_folder import RunFolder

    with RunFolder(folder).locked():
        record = Record(command=tuple(command), setting=setting)
        cells = CellFile(folder / "cells.jsonl")
        plan = experiment.plan(setting)
        kept = folder if store is None else store
        for number, cell in enumerate(plan):
            watch(number, _shown(cell))
            if cell in cells:
                continue
            if experiment.isolated:
                cells.add(cell, measure_apart(experiment, cell, kept))
            else:
                cells.add(cell, experiment.measure(cell, kept))
        watch(len(plan), "")
        rows = cells.rows(plan)
        findings = experiment.present(rows)
        write_findings(experiment, findings, rows, folder, record)
        return findings


def _shown(cell: dict[str, object]) -> str:
    """The words of a cell, which tell it from others."""
    return ", ".join(str(value) for value in cell.values() if isinstance(value, str))
