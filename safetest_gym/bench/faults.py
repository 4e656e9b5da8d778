"""[J] Fig. 4: what it takes to find all faults of an unsafe run, and how many there are.

Each unsafe run is analysed with a cache of its own, which its states share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import Cell, Experiment, Facts, Findings, Row, Setting, Table
from safetest_gym.bench.figures import LineFigure
from safetest_gym.bench.oracles import TASKS
from safetest_gym.bench.policies import failing_subject, note_policies
from safetest_gym.bench.timing import stopwatch

if TYPE_CHECKING:
    from safetest_gym.faults import FaultAnalysis
    from safetest_gym.fuzzing import Run

__all__ = ["EXPERIMENT"]

WAYS: tuple[tuple[str, str, str], ...] = (
    ("otf", "inf", "backward"),
    ("otf", "inf", "forward"),
    ("tarjan", "inf", "backward"),
    ("tarjan", "inf", "forward"),
    ("lrtdp", "inf", "backward"),
    ("lao", "inf", "backward"),
    ("tarjan", "0", "backward"),
    ("tarjan", "1", "backward"),
    ("tarjan", "2", "backward"),
    ("tarjan", "3", "backward"),
)
"""Algorithm, radius, direction."""

_DECIDER_STATES, _QUERY_SECONDS = 1_000_000, 0.1
"""Budget of a decider, and of each query: TarjanSafe may visit few states for ever."""

_PER_RUN = ("seconds", "faults", "states", "unresolved")
"""Facts that are lists, one entry per unsafe run."""


def _plan(setting: Setting) -> list[Cell]:
    names = list(TASKS)[: 5 if setting.quick else None]
    sizes: Cell = {"steps": [200_000, 50_000, 20_000], "runs": 100, "cap": 20.0}
    if setting.quick:
        sizes = {"steps": [50_000, 20_000], "runs": 15, "cap": 5.0}
    return [
        {
            "task": name,
            "algorithm": algorithm,
            "radius": radius,
            "direction": direction,
            "seed": setting.seed,
            **sizes,
        }
        for name in names
        for algorithm, radius, direction in WAYS
    ]


def _measure(cell: Cell, folder: Path) -> Facts:
    from safetest_gym.deciders import Budget, make_decider
    from safetest_gym.faults import find_faults

    name, parameters = TASKS[cell["task"]]
    subject = failing_subject(name, parameters, (cell["steps"], cell["seed"]), folder)
    task, policy, radius = subject.task, subject.policy, float(cell["radius"])
    decider = make_decider(
        cell["algorithm"],
        task,
        policy=None if radius == math.inf else policy,
        radius=radius,
        budget=Budget(states=_DECIDER_STATES, seconds=_QUERY_SECONDS),
    )

    def analyse(run: Run) -> FaultAnalysis:
        decider.clear()
        return find_faults(task, policy, [run], decider, direction=cell["direction"], radius=radius)

    runs = list(subject.runs.unsafe())[: cell["runs"]]
    facts: Facts = {"seconds": [], "faults": [], "states": [], "unresolved": []}
    for run in runs[:1]:
        analyse(run)  # loads the kernels
    for run in runs:
        with stopwatch() as watch:
            found = analyse(run)
        facts["seconds"].append(round(watch.seconds, 6))
        facts["faults"].append(len(found.faults))
        facts["states"].append(len(run.states))
        facts["unresolved"].append(len(found.unresolved))
        if math.fsum(facts["seconds"]) > cell["cap"]:
            break
    return {**facts, "steps": subject.steps}


def _present(rows: Sequence[Row]) -> Findings:
    heads = [
        "algorithm",
        "unsafe runs",
        "faults per run",
        "runs with a fault, %",
        "CPU ms per run",
        "CPU ms per state",
        "unresolved",
    ]
    notes, rows = _notes(rows), _compared(rows)
    tables = [Table("All tasks", heads, [_line(way, _of(rows, way)) for way in WAYS])]
    for task in dict.fromkeys(row.cell["task"] for row in rows):
        chosen = [row for row in rows if row.cell["task"] == task]
        if any(_joined(chosen)["faults"]):
            tables.append(Table(task, heads, [_line(way, _of(chosen, way)) for way in WAYS]))
    figures = {
        "inf": _scatter(rows, WAYS[4:6] + WAYS[:1]),
        "radius": _scatter(rows, WAYS[6:]),
        "direction": _scatter(rows, WAYS[3:4]),
    }
    return Findings(tables=tables, figures=figures, notes=notes)


def _compared(rows: Sequence[Row]) -> list[Row]:
    """Only the runs of a task that all algorithms had the time for."""
    least = {task: found[0] for task, found in _analysed(rows).items()}
    return [
        Row(row.cell, {name: row.facts[name][: least[row.cell["task"]]] for name in _PER_RUN})
        for row in rows
        if row.facts
    ]


def _analysed(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Per task, how many runs the algorithms analysed, the fewest first."""
    found: dict[str, list[int]] = {}
    for row in rows:
        if row.facts:
            found.setdefault(row.cell["task"], []).append(len(row.facts["seconds"]))
    return {task: sorted(counts) for task, counts in found.items()}


def _of(rows: Sequence[Row], way: tuple[str, str, str]) -> list[Row]:
    return [
        row
        for row in rows
        if (row.cell["algorithm"], row.cell["radius"], row.cell["direction"]) == way
    ]


def _shown(way: tuple[str, str, str]) -> str:
    algorithm, radius, direction = way
    return f"{radius}-{algorithm}" + (" forward" if direction == "forward" else "")


def _joined(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [v for row in rows if row.facts for v in row.facts[name]] for name in _PER_RUN}


def _line(way: tuple[str, str, str], rows: Sequence[Row]) -> list[str]:
    found = _joined(rows)
    count = len(found["seconds"])
    if not count:
        return [_shown(way), "0", "", "", "", "", ""]
    seconds, faults = math.fsum(found["seconds"]), found["faults"]
    return [
        _shown(way),
        str(count),
        f"{sum(faults) / count:.2f}",
        f"{100 * sum(number > 0 for number in faults) / count:.1f}",
        f"{1000 * seconds / count:.3f}",
        f"{1000 * seconds / sum(found['states']):.4f}",
        str(sum(found["unresolved"])),
    ]


def _scatter(rows: Sequence[Row], ways: Sequence[tuple[str, str, str]]) -> LineFigure:
    """Each run: its time with TarjanSafe and with another way."""
    base = {row.cell["task"]: row.facts for row in _of(rows, WAYS[2])}
    series: dict[str, list[tuple[float, float]]] = {}
    for way in ways:
        points: list[tuple[float, float]] = []
        for row in _of(rows, way):
            first = base.get(row.cell["task"])
            if first and row.facts:
                points += zip(first["seconds"], row.facts["seconds"], strict=True)
        series[_shown(way)] = points
    return LineFigure(
        title="Fault analysis of one unsafe run",
        x_name="CPU seconds of inf-tarjan",
        y_name="CPU seconds",
        series=series,
        log_x=True,
        log_y=True,
        joined=False,
        diagonal=True,
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    cell = rows[0].cell
    return [
        note_policies(rows),
        f"at most {cell['runs']} of those unsafe runs per task, and no further ones once an "
        f"algorithm has spent {cell['cap']:g} CPU s on a task; compared are the runs that all "
        f"algorithms finished{_fewer(rows)}",
        f"an empty cache for each run; deciders know at most {_DECIDER_STATES:,} states and have "
        f"{_QUERY_SECONDS:g} s per state, what is open then is unresolved",
        "r-: safe with at most r deviations from the policy",
    ]


def _fewer(rows: Sequence[Row]) -> str:
    """Tasks of which not all runs could be compared."""
    counts = _analysed(rows).items()
    cut = [f"{task} {found[0]} of {found[-1]}" for task, found in counts if found[0] < found[-1]]
    return f" ({', '.join(cut)})" if cut else ""


EXPERIMENT = Experiment(name="faults", plan=_plan, measure=_measure, present=_present)
