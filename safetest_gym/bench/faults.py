"""[J] Fig. 4: what it takes to find all faults of an unsafe run, and how many there are.

Each unsafe run is analysed with a cache of its own, which its states share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetest_gym.bench.experiment import Cell, Experiment, Facts, Findings, Row, Setting, Table
from safetest_gym.bench.figures import LineFigure
from safetest_gym.bench.oracles import TASKS, test_runs
from safetest_gym.bench.policies import open_bundled, trained
from safetest_gym.bench.timing import stopwatch

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

_DECIDER_STATES = 100_000
"""A budget in states, so that what is found depends on no clock."""


def _plan(setting: Setting) -> list[Cell]:
    names = list(TASKS)[: 5 if setting.quick else None]
    sizes = {"steps": 40_000, "runs": 15} if setting.quick else {"steps": 200_000, "runs": 200}
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
    task, _, _ = open_bundled(name, parameters)
    policy = trained(name, parameters, (cell["steps"], cell["seed"]), folder)
    radius = float(cell["radius"])
    decider = make_decider(
        cell["algorithm"],
        task,
        policy=None if radius == math.inf else policy,
        radius=radius,
        budget=Budget(states=_DECIDER_STATES),
    )
    runs = list(test_runs(task, policy, 10 * cell["runs"], cell["seed"]).unsafe())
    facts: Facts = {"seconds": [], "faults": [], "states": [], "unresolved": 0}
    # The first run twice, because kernels load then.
    for number, run in enumerate([*runs[:1], *runs[: cell["runs"]]]):
        decider.clear()
        with stopwatch() as watch:
            found = find_faults(
                task, policy, [run], decider, direction=cell["direction"], radius=radius
            )
        if number:
            facts["seconds"].append(round(watch.seconds, 6))
            facts["faults"].append(len(found.faults))
            facts["states"].append(len(run.states))
            facts["unresolved"] += len(found.unresolved)
    return facts


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
    return Findings(tables=tables, figures=figures, notes=_notes(rows))


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
    names = ("seconds", "faults", "states")
    return {name: [v for row in rows if row.facts for v in row.facts[name]] for name in names}


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
        str(sum(row.facts["unresolved"] for row in rows if row.facts)),
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
        f"policies: the task's preset, {cell['steps']:,} steps; at most {cell['runs']} unsafe runs "
        "per task, from greedy fuzzing with unlimited lookahead",
        f"an empty cache for each run; deciders know at most {_DECIDER_STATES:,} states, what is "
        "open then is unresolved",
        "r-: safe with at most r deviations from the policy",
    ]


EXPERIMENT = Experiment(name="faults", plan=_plan, measure=_measure, present=_present)
