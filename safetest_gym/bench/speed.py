"""How fast we are: exploring, stepping and deciding, beside Storm and Momba in the same run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetest_gym.bench import peers, speed_work
from safetest_gym.bench.experiment import Cell, Experiment, Facts, Findings, Row, Setting, Table
from safetest_gym.bench.policies import open_bundled
from safetest_gym.errors import EngineError

__all__ = ["EXPERIMENT", "MODELS"]

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "line": ("OneWayLine", {"packages": 15, "locations": 10}),
    "short line": ("OneWayLine", {"packages": 9, "locations": 7}),
    "415 edges": ("TwoWayLine", {"packages": 15, "locations": 50}),
}
"""The short line stands for the other one where a quick experiment looks at all states."""

PUBLISHED = "published line"
"""The line with the start states published with it: files that may be missing."""

_STEPPED = ("line", "415 edges")

_ALGORITHMS = ("otf", "ipi", "npi", "tarjan", "lrtdp")


def _plan(setting: Setting) -> list[Cell]:
    repeats = 1 if setting.quick else 5
    limit = 2.0 if setting.quick else 10.0
    line = "short line" if setting.quick else "line"
    storm, momba = peers.installed("stormpy"), peers.installed("momba")
    cells: list[Cell] = []
    for repeat in range(repeats):
        for work in ("explore", "safe set"):
            cells.append({"work": work, "model": line, "tool": "ours", "repeat": repeat})
            if storm:
                cells.append({"work": work, "model": line, "tool": "Storm", "repeat": repeat})
        for model in _STEPPED:
            cells.append({"work": "step", "model": model, "tool": "ours", "repeat": repeat})
            if momba:
                cells.append({"work": "step", "model": model, "tool": "Momba", "repeat": repeat})
            cells.append({"work": "step 1024", "model": model, "tool": "ours", "repeat": repeat})
        cells.append({"work": "bulk", "model": line, "tool": "ours", "repeat": repeat})
        cells += [
            {"work": "query", "model": asked, "tool": tool, "fresh": fresh, "repeat": repeat}
            | {"limit": limit}
            for asked in (line, *([PUBLISHED] if speed_work.published_files() else []))
            for fresh in (True, False)
            for tool in (_ALGORITHMS if fresh else _ALGORITHMS[:2])
        ]
    return cells


def _measure(cell: Cell, folder: Path) -> Facts:
    work, tool = cell["work"], cell["tool"]
    published = speed_work.published_files()
    if cell["model"] == PUBLISHED and published:
        return speed_work.queries(*published, tool, cell["fresh"], cell["limit"])
    name, parameters = MODELS[cell["model"]]
    if work == "step 1024":
        return speed_work.step_many(name, parameters, 1_000, 7)
    if work == "step" and tool == "Momba":
        _, generator, _ = open_bundled(name, parameters)
        return peers.step_with_momba(generator.model(), generator.properties()[0], 3_000, 5)
    if work == "step":
        return speed_work.step_one(name, parameters, 100_000, 5)
    files = speed_work.listed_files(name, parameters, folder)
    if work == "explore":
        chosen = peers.explore_with_storm if tool == "Storm" else speed_work.explore
        return chosen(*files)
    if work == "safe set":
        chosen = peers.safe_set_with_storm if tool == "Storm" else speed_work.safe_set
        return chosen(*files)
    if work == "bulk":
        return speed_work.bulk(*files, rounds=100)
    return speed_work.queries(*files, tool, cell["fresh"], cell["limit"])


def _present(rows: Sequence[Row]) -> Findings:
    lines = []
    for work, peer in (("explore", "Storm"), ("safe set", "Storm")):
        lines += _whole(rows, work, peer)
    for model in _STEPPED:
        name = f"gym.make, steps/s, {model}"
        lines += _compared(name, rows, {"work": "step", "model": model}, "Momba")
        many = {"work": "step 1024", "model": model}
        lines += _compared(f"1024 copies, steps/s, {model}", rows, many, "")
        lines += _compared(f"the same, all passes, {model}", rows, many, "", key="overall")
    lines += _compared("outcomes/s in bulk", rows, {"work": "bulk"}, "")
    asked = [row.cell["model"] for row in rows if row.cell["work"] == "query"]
    for model in dict.fromkeys(asked):
        for fresh in (True, False):
            lines += _decided(rows, {"work": "query", "model": model, "fresh": fresh})
    heads = ["work", "ours", "other", "ratio (above 1: ours is better)"]
    return Findings(tables=[Table("Speed", heads, lines)], notes=_notes(rows))


def _facts(rows: Sequence[Row], wanted: Cell, key: str) -> list[float]:
    return [
        row.facts[key]
        for row in rows
        if row.facts
        and key in row.facts
        and all(row.cell.get(name) == value for name, value in wanted.items())
    ]


def _whole(rows: Sequence[Row], work: str, peer: str) -> list[list[str]]:
    """Times and memory of a whole state space; both must have found the same."""
    lines = []
    for key, text, unit in (("seconds", "time", "s"), ("peak_mb", "memory", "MB")):
        ours = _facts(rows, {"work": work, "tool": "ours"}, key)
        theirs = _facts(rows, {"work": work, "tool": peer}, key)
        if not ours or math.isnan(ours[0]):  # a system that does not tell its memory
            continue
        line = [f"{work}, {text}", f"{min(ours):,.3g} {unit}", "", ""]
        if theirs:
            line[2] = f"{peer} {min(theirs):,.3g} {unit}"
            line[3] = f"{min(theirs) / min(ours):.1f}"
        lines.append(line)
    _check_same(rows, work)
    return lines


def _check_same(rows: Sequence[Row], work: str) -> None:
    for key in ("states", "safe") if work == "safe set" else ("states",):
        found = set(_facts(rows, {"work": work}, key))
        if len(found) > 1:
            raise EngineError(f"{work}: ours and the other's numbers of {key} differ: {found}")


def _compared(
    name: str, rows: Sequence[Row], wanted: Cell, peer: str, own: str = "ours", key: str = "rate"
) -> list[list[str]]:
    ours = _facts(rows, {**wanted, "tool": own}, key)
    theirs = _facts(rows, {**wanted, "tool": peer}, key)
    if not ours or (own != "ours" and not theirs):
        return []
    line = [name, f"{max(ours):,.0f}", "", ""]
    if theirs:
        line[2] = f"{peer} {max(theirs):,.0f}"
        line[3] = f"{max(ours) / max(theirs):.1f}"
    return [line]


def _decided(rows: Sequence[Row], wanted: Cell) -> list[list[str]]:
    """`otf` beside the other algorithms, the best of these first."""
    starts = "published" if wanted["model"] == PUBLISHED else "drawn"
    cache = "fresh" if wanted["fresh"] else "shared"
    found = {
        other: max(_facts(rows, {**wanted, "tool": other}, "rate"), default=0.0)
        for other in _ALGORITHMS[1:]
    }
    lines = []
    for other in sorted(found, key=lambda other: -found[other]):
        name = f"otf beside {other}: {starts} start states decided/s, {cache} cache"
        lines += _compared(name, rows, wanted, other, "otf")
    first = _facts(rows, {**wanted, "tool": "otf"}, "first")
    if lines and first and wanted["fresh"]:
        best, name = max(found.values()), "otf in its first pass, in which it learns"
        texts = [f"{max(first):,.0f}", *lines[0][2:3], f"{max(first) / best:.1f}"]
        lines.append([f"{name}: {starts} start states decided/s, {cache} cache", *texts])
    return lines


def _notes(rows: Sequence[Row]) -> list[str]:
    states = _facts(rows, {"work": "explore", "tool": "ours"}, "states")
    notes = [
        "every figure in a process of its own; the best of the repeats",
        f"decisions: the best of {speed_work.PASSES} passes, where there is time; a fresh cache "
        "knows no state, but otf keeps what it has learnt about the order of actions",
    ]
    if states:
        explored = next(row.cell["model"] for row in rows if row.cell["work"] == "explore")
        name, parameters = MODELS[explored]
        notes.append(
            f"all states, bulk and decisions: {name} {parameters}, {speed_work.STARTS} start "
            f"states drawn, {states[0]:,} states"
        )
    if any(row.cell["model"] == PUBLISHED for row in rows):
        notes.append("published start states: the 1000 listed with one_way_line_15_10_det")
    else:
        notes.append("published start states are missing: no ../shared/models here")
    for peer, package in (("Storm", "stormpy"), ("Momba", "momba")):
        if not any(row.cell["tool"] == peer for row in rows):
            notes.append(f"{peer} is missing: {package} is not installed")
    late = sum(row.facts is None for row in rows)
    if late:
        notes.append(f"{late} cells did not end within {EXPERIMENT.cap_seconds:g} s")
    return notes


EXPERIMENT = Experiment(
    name="speed",
    plan=_plan,
    measure=_measure,
    present=_present,
    isolated=True,
    cap_seconds=300.0,
)
