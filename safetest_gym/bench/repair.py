"""[C] Table 1 and Fig. 2: %Unsafe and %Goal before and after the debugging loop.

The inputs are as good as they can be and still fail: a network trained with the task's preset,
whose last layer is repaired, and an ensemble (20 trees of depth 5) that imitates a network.
Penalty trees get the faults that the loop with ``leaves`` found, and so does the ablation,
which uses a fraction of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from safetest_gym.bench.figures import LineFigure
from safetest_gym.bench.policies import open_bundled
from safetest_gym.bench.repair_inputs import LEARNT, SEEDS, Inputs

if TYPE_CHECKING:
    from safetest_gym.campaign.debugging import DebugConfig
    from safetest_gym.policies import Policy
    from safetest_gym.repair.requests import FaultSet
    from safetest_gym.task import Task

__all__ = ["EXPERIMENT", "TASKS", "cells_of"]

QUICK = ("Beluga-3", "Beluga-4", "TwoWayLine-det-15")
METHODS = ("leaves", "penalty-trees", "last-layer")
FRACTIONS = (0.1, 0.5, 1.0)
LENGTHS = (300_000, 100_000, 25_000, 5_000, 1_000, 128)
"""Steps of trainings to choose from."""
SIZE = 200
"""Runs per test; what they miss is found by exhausting states, and by verification."""

_DECIDER_STATES = {"OneWayLine-icy-15": 25_000_000}
"""Where fewer do not suffice to see that no policy is safe; about 1.3 GB."""


def _tasks() -> dict[str, tuple[str, dict[str, Any]]]:
    tasks: dict[str, tuple[str, dict[str, Any]]] = {
        "Beluga-3": ("Beluga", {"jigs": 3}),
        "Beluga-4": ("Beluga", {"jigs": 4}),
    }
    for name in ("OneWayLine", "TwoWayLine"):
        for variant in ("det", "icy", "icy_park"):
            for packages in (15, 17):
                parameters = {"packages": packages, "locations": 10, "variant": variant}
                tasks[f"{name}-{variant}-{packages}"] = (name, parameters)
    tasks["Blocksworld-8"] = ("Blocksworld", {"blocks": 8})
    for name in ("Transport", "BouncingBall", "InvertedPendulum", "FollowCar"):
        tasks[name] = (name, {})
    return tasks


TASKS = _tasks()


def _plan(setting: Setting) -> list[Cell]:
    return cells_of(QUICK if setting.quick else tuple(TASKS), setting)


def cells_of(names: Sequence[str], setting: Setting) -> list[Cell]:
    """The cells of these rows of the table."""
    cells: list[Cell] = []
    for name in names:
        common = {"task": name, "seed": setting.seed, "steps": list(LENGTHS), "size": SIZE}
        cells += [{**common, "method": method, "fraction": 1.0} for method in METHODS]
        cells += [{**common, "method": "ablation", "fraction": part} for part in FRACTIONS]
    return cells


def _measure(cell: Cell, folder: Path) -> Facts:
    name, parameters = TASKS[cell["task"]]
    task, _, limit = open_bundled(name, parameters)
    place = folder / "repair" / f"{cell['task']}-{cell['size']}-{cell['seed']}"
    inputs = Inputs(task, (name, parameters), (cell["steps"], cell["seed"]), folder, place)
    method = cell["method"]
    if method == "last-layer":
        facts = _loop(task, inputs.network(), _config(cell, limit), place / method)
        return {**facts, "input": inputs.training()}
    policy = inputs.ensemble()
    config = _config({**cell, "method": "leaves"}, limit)
    found = _loop(task, policy, config, place / "leaves")  # at once if it is there
    if method == "leaves":
        return {**found, "input": inputs.imitation()}
    if not found["faults"]:
        same = {key: found[key] for key in ("unsafe", "goal", "exact")}
        return {**same, "faults": 0, "open": 0, "trees": 0, "seconds": 0.0}
    faults = _faults(task, place / "leaves", cell["fraction"])
    return _once(task, policy, faults, config, method)


def _config(cell: Cell, step_limit: int) -> DebugConfig:
    from safetest_gym.campaign.debugging import DebugConfig
    from safetest_gym.campaign.pipeline import TestPlan
    from safetest_gym.deciders import Budget
    from safetest_gym.policies import EvaluationConfig
    from safetest_gym.repair.repairing import RepairOptions

    layer = cell["method"] == "last-layer"
    return DebugConfig(
        repair=RepairOptions(
            method=("last-layer", "finetune") if layer else "leaves",
            work=1,
            gap=0.02,
        ),
        test=TestPlan(
            runs=cell["size"],
            max_steps=step_limit,
            search=20_000,
            decider_states=_DECIDER_STATES.get(cell["task"], 2_000_000),
        ),
        debugging_starts=1_000,
        evaluation_starts=200,
        runs_per_start=5,
        evaluation=EvaluationConfig(step_limit=step_limit, max_states=1_000_000),
        iterations=40,
        seconds=900,
        visited=500,
        verify_budget=Budget(states=100_000_000, megabytes=4000, seconds=300),
    )


def _loop(task: Task, policy: Policy, config: DebugConfig, folder: Path) -> Facts:
    from safetest_gym.campaign.debugging import debug_policy

    result = debug_policy(task, policy, config=config, directory=folder)
    first, last = result.iterations[0], result.iterations[-1]
    repairs = [row.repair for row in result.iterations if row.repair]
    asked = [row.verification["verdict"] for row in result.iterations if row.verification]
    return {
        "unsafe_before": 100 * first.unsafe_rate,
        "goal_before": 100 * first.goal_rate,
        "unsafe": 100 * last.unsafe_rate,
        "goal": 100 * last.goal_rate,
        "exact": bool(first.exact and last.exact),
        "faults": last.faults_total,
        "open": last.faults_open,
        "trees": repairs[-1]["trees_added"] if repairs else 0,
        "repairs": len(repairs),
        "verified": len(asked),
        "outcome": f"{result.end} {asked[-1] if asked else ''}".strip(),
        "seconds": round(sum(sum(row.seconds.values()) for row in result.iterations), 2),
    }


def _faults(task: Task, folder: Path, fraction: float) -> FaultSet:
    """A fraction of the faults of a loop, chosen at random; a larger one has the smaller ones."""
    import numpy as np

    from safetest_gym.faults import FaultStore
    from safetest_gym.repair.requests import FaultSet

    with FaultStore(folder / "faults.db") as store:
        faults = [entry.fault for entry in store.faults(task)]
    order = np.random.default_rng(0).permutation(len(faults))
    chosen = sorted(order[: round(fraction * len(faults))].tolist())
    return FaultSet.of(task, [faults[number] for number in chosen])


def _once(task: Task, policy: Policy, faults: FaultSet, config: DebugConfig, method: str) -> Facts:
    """Repair the given faults, and judge what comes out."""
    from safetest_gym.campaign.debugging_starts import split_starts
    from safetest_gym.policies import evaluate
    from safetest_gym.repair.repairing import RepairOptions

    facts: Facts = {"faults": len(faults), "open": 0, "trees": 0, "seconds": 0.0}
    after: Any = policy
    if len(faults):
        begun = time.monotonic()
        how: Any = "penalty-trees" if method == "penalty-trees" else "leaves"
        work = config.repair.work if config.repair else 20.0
        after, report = RepairOptions(method=how, work=work, gap=0.02).run(policy, faults)
        facts["seconds"] = round(time.monotonic() - begun, 3)
        facts["open"] = int((~report.fixed).sum())
        facts["trees"] = report.trees_added
    starts = split_starts(task, config.debugging_starts, config.evaluation_starts, 0)
    found = evaluate(
        after, task, starts.evaluation, config.runs_per_start, config=config.evaluation
    )
    return {
        **facts,
        "unsafe": 100 * found.unsafe_rate.value,
        "goal": 100 * found.goal_rate.value,
        "exact": bool(found.exact.all()),
    }


def _present(rows: Sequence[Row]) -> Findings:
    by = {(r.cell["task"], r.cell["method"], r.cell["fraction"]): r.facts for r in rows}
    names = list(dict.fromkeys(row.cell["task"] for row in rows))
    lines = [_line(name, [by.get((name, method, 1.0)) for method in METHODS]) for name in names]
    heads = ["task", "trees: input", "leaves", "penalty trees", "network: input", "last layer"]
    tables = [Table("%Unsafe / %Goal", heads, lines)]
    heads = ["task", "input", "faults", "trees added", "repairs", "verified", "outcome", "wall s"]
    for method in ("leaves", "last-layer"):
        loops = [_loop_line(name, by.get((name, method, 1.0))) for name in names]
        tables.append(Table(f"The loop with {method}", heads, loops))
    cells = []
    for part in FRACTIONS:
        found = [by.get((name, "ablation", part)) for name in names]
        means = [
            mean_or_none([facts[key] for facts in found if facts])
            for key in ("faults", "unsafe", "goal", "seconds")
        ]
        cells.append([f"{100 * part:.0f} %", *("" if m is None else f"{m:.2f}" for m in means)])
    heads = ["faults used", "faults", "%Unsafe", "%Goal", "repair, wall s"]
    tables.append(Table("Part of the faults, repaired at once: means over tasks", heads, cells))
    return Findings(
        tables=tables,
        figures={"unsafe": _curve(by, names, "unsafe"), "goal": _curve(by, names, "goal")},
        notes=_notes(rows),
    )


def _line(name: str, cells: Sequence[Facts | None]) -> list[str]:
    leaves, penalty, layer = cells
    shown = [name, _rates(leaves, "_before"), _rates(leaves), _rates(penalty)]
    return [*shown, _rates(layer, "_before"), _rates(layer)]


def _loop_line(name: str, facts: Facts | None) -> list[str]:
    if facts is None:
        return [name, *[""] * 7]
    counts = [str(facts[key]) for key in ("faults", "trees", "repairs", "verified")]
    return [name, _input(facts), *counts, facts["outcome"], f"{facts['seconds']:.0f}"]


def _input(facts: Facts) -> str:
    steps, seed, *runs = facts["input"]
    learnt = f", {runs[0]:,} runs" if runs else ""
    return f"{steps:,} steps, seed {seed}{learnt}"


def _rates(facts: Facts | None, when: str = "") -> str:
    if facts is None:
        return "-"
    least = "" if facts["exact"] else "≥ "
    return f"{least}{facts[f'unsafe{when}']:.1f} / {facts[f'goal{when}']:.1f}"


def _curve(by: dict[Any, Facts | None], names: Sequence[str], key: str) -> LineFigure:
    """Of the tasks with faults, the input policy first."""
    series = {}
    for name in names:
        loop = by.get((name, "leaves", 1.0))
        if not loop or not loop["faults"]:
            continue
        points = [(100 * part, by.get((name, "ablation", part))) for part in FRACTIONS]
        line = [(x, float(facts[key])) for x, facts in points if facts]
        series[name] = [(0.0, float(loop[f"{key}_before"])), *line]
    return LineFigure(
        title=f"%{key.capitalize()} after repairing part of the faults",
        x_name="percent of the faults",
        y_name="percent",
        series=series,
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    cell = rows[0].cell
    late = sum(row.facts is None for row in rows)
    lengths = ", ".join(f"{steps:,}" for steps in cell["steps"])
    learnt = ", ".join(f"{runs:,}" for runs in LEARNT)
    notes = [
        f"networks: the task's preset, with the first of {SEEDS} seeds and the most of {lengths} "
        "steps",
        f"ensembles: 20 trees of depth 5 that imitate a network of {cell['steps'][0]:,} steps in "
        f"the most of {learnt} runs, or the repaired network in {LEARNT[0]:,}",
        "both are the first that failed in one of 200 greedy runs with unlimited lookahead, and "
        "reached the goal in one of 2,000 sampled ones; if there was none, the first that failed; "
        "and if none failed, the first",
        f"{cell['size']:,} runs per test, and 20,000 states exhausted; other start states for the "
        "rates, where there are enough",
        "≥: not all start states could be exhausted; outcome: why the loop ended, and what its "
        "last verification said",
    ]
    if late:
        notes.append(f"{late} cells did not end within {EXPERIMENT.cap_seconds:g} s")
    return notes


EXPERIMENT = Experiment(
    name="repair",
    plan=_plan,
    measure=_measure,
    present=_present,
    isolated=True,
    cap_seconds=1_800.0,
)
