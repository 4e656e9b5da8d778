"""[J] Fig. 2: how many unsafe runs uniform and biased fuzzing find, and in what time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from safetest_gym.bench.experiment import (
    Cell,
    Experiment,
    Facts,
    Findings,
    Row,
    Setting,
    Table,
    mean_or_none,
)
from safetest_gym.bench.figures import BarFigure
from safetest_gym.bench.policies import Subject, failing_subject, note_policies
from safetest_gym.bench.timing import stopwatch

if TYPE_CHECKING:
    from safetest_gym.fuzzing import Fuzzer

__all__ = ["EXPERIMENT", "TASKS", "WAYS"]

Strategy = Literal["uniform", "greedy", "weighted"]

WAYS: tuple[tuple[Strategy, str], ...] = (
    ("uniform", "1"),
    ("greedy", "1"),
    ("weighted", "1"),
    ("greedy", "inf"),
    ("weighted", "inf"),
)
"""Strategies with their lookahead."""

TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "Beluga": ("Beluga", {"jigs": 4, "racks": 3}),
    "OneWayLine icy": ("OneWayLine", {"packages": 8, "variant": "icy"}),
    "TwoWayLine icy_park": ("TwoWayLine", {"packages": 3, "variant": "icy_park"}),
    "FlappyBird": ("FlappyBird", {}),
    "Blocksworld": ("Blocksworld", {"blocks": 5, "table_limit": 4}),
    "RoversMarsMini": ("RoversMarsMini", {}),
    "OneWayLine icy_park": ("OneWayLine", {"packages": 8, "variant": "icy_park"}),
    "TwoWayLine icy": ("TwoWayLine", {"packages": 3, "variant": "icy"}),
    "NPuzzle": ("NPuzzle", {}),
    "Rovers": ("Rovers", {}),
    "RoversMars": ("RoversMars", {}),
    "RoversMarsMiniCap": ("RoversMarsMiniCap", {}),
}
"""Bundled tasks with chance; a quick experiment takes the first six."""

QUICK_TASKS = 6
_SEARCH = 10_000
"""States of one continuation search, see `FuzzBudget`."""


def _plan(setting: Setting) -> list[Cell]:
    names = list(TASKS)[: QUICK_TASKS if setting.quick else None]
    sizes: Cell = {"steps": [200_000, 50_000, 20_000], "runs": 1_000}
    if setting.quick:
        sizes = {"steps": [50_000, 20_000], "runs": 300}
    seeds = range(setting.seed, setting.seed + (1 if setting.quick else 3))
    return [
        {"task": name, "strategy": strategy, "lookahead": lookahead, "seed": seed, **sizes}
        for seed in seeds
        for name in names
        for strategy, lookahead in WAYS
    ]


def _measure(cell: Cell, folder: Path) -> Facts:
    name, parameters = TASKS[cell["task"]]
    subject = failing_subject(name, parameters, (cell["steps"], cell["seed"]), folder)
    _fuzzer(subject, cell).run(1)  # loads the kernels
    fuzzer = _fuzzer(subject, cell)
    with stopwatch() as watch:
        runs = fuzzer.run(cell["runs"])
    counts = runs.counts()
    return {
        "unsafe": counts["failing"],
        "goal": counts["goal"],
        "seconds": round(watch.seconds, 4),
        "run_steps": int(runs.lengths.sum()),
        "steps": subject.steps,
    }


def _fuzzer(subject: Subject, cell: Cell) -> Fuzzer:
    from safetest_gym.fuzzing import FuzzBudget, Fuzzer

    return Fuzzer(
        subject.task,
        subject.policy,
        strategy=cell["strategy"],
        lookahead=float(cell["lookahead"]),
        max_steps=200,
        budget=FuzzBudget(search=_SEARCH),
        seed=cell["seed"],
    )


def _present(rows: Sequence[Row]) -> Findings:
    tasks = list(dict.fromkeys(row.cell["task"] for row in rows))
    ways = [f"{strategy} {lookahead}" for strategy, lookahead in WAYS]

    def mean(task: str, way: str, of: str) -> float | None:
        found = [
            100 * row.facts["unsafe"] / row.cell["runs"]
            if of == "unsafe"
            else 1000 * row.facts["seconds"] / row.cell["runs"]
            for row in rows
            if row.facts and row.cell["task"] == task and _way(row) == way
        ]
        return mean_or_none(found)

    unsafe = {way: [mean(task, way, "unsafe") for task in tasks] for way in ways}
    taken = {way: [mean(task, way, "time") for task in tasks] for way in ways}
    tables = [
        Table("Unsafe runs, in percent", ["task", *ways], _lines(tasks, unsafe, 1)),
        Table("CPU milliseconds per run", ["task", *ways], _lines(tasks, taken, 3)),
    ]
    figures = {
        "unsafe": BarFigure(
            title="Unsafe runs", y_name="percent of runs", groups=tasks, series=unsafe
        ),
        "time": BarFigure(
            title="Time per run", y_name="CPU ms", groups=tasks, series=taken, log_y=True
        ),
    }
    seeds = len({row.cell["seed"] for row in rows})
    return Findings(tables=tables, figures=figures, notes=_notes(rows, unsafe, seeds))


def _notes(rows: Sequence[Row], unsafe: dict[str, list[float | None]], seeds: int) -> Sequence[str]:
    if not rows:
        return ()
    cell = rows[0].cell
    notes = [
        note_policies(rows),
        f"{seeds} policies per task; {cell['runs']} runs each, at most 200 steps, searches of at "
        f"most {_SEARCH:,} states",
    ]
    for way, found in list(unsafe.items())[1:]:
        pairs = [
            (a, b)
            for a, b in zip(unsafe["uniform 1"], found, strict=True)
            if a is not None and b is not None
        ]
        more, fewer = sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)
        notes.append(
            f"{way} finds more unsafe runs than uniform on {more} of {len(pairs)} tasks, fewer "
            f"on {fewer}"
        )
    return notes


def _way(row: Row) -> str:
    return f"{row.cell['strategy']} {row.cell['lookahead']}"


def _lines(
    tasks: Sequence[str], series: dict[str, list[float | None]], digits: int
) -> list[list[str]]:
    return [
        [task, *("" if v is None else f"{v:.{digits}f}" for v in values)]
        for task, values in zip(tasks, zip(*series.values(), strict=True), strict=True)
    ]


EXPERIMENT = Experiment(name="fuzzing", plan=_plan, measure=_measure, present=_present)
