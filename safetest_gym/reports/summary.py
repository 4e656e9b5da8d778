"""Before and after: one row per policy that something in the folder was measured of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safetest_gym.reports.fault_file import FaultList
from safetest_gym.reports.sources import Loop, Results, Sources, Tests, Training

__all__ = ["Row", "Table", "open_faults", "policy_name", "summary_tables", "verdict_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """A policy; None is not known.

    Attributes:
        unsafe: fraction of starts from which it can fail.
        goal: fraction of runs that reach the goal.
        faults: known and not fixed.
        verdict: SAFE, UNSAFE, UNKNOWN or empty.
    """

    name: str
    unsafe: float | None = None
    goal: float | None = None
    faults: int | None = None
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that belong together, the first before, the last after."""

    title: str
    rows: list[Row]

    @property
    def before(self) -> Row:
        """The first."""
        return self.rows[0]

    @property
    def after(self) -> Row:
        """The last."""
        return self.rows[-1]


def summary_tables(sources: Sources, faults: list[FaultList]) -> list[Table]:
    """The tables of everything in the folder, the most telling first."""
    tables = [_results(results) for results in sources.results]
    tables += [_loop(loop) for loop in sources.loops if loop.iterations]
    tables += [_tests(tests) for tests in sources.tests if tests.records]
    tables += [_training(training) for training in sources.trainings if training.history]
    stores = [
        Table(f"Faults in {found.name}", [Row(found.task, faults=found.open)]) for found in faults
    ]
    return [table for table in tables if table.rows] or stores


def verdict_of(verification: Mapping[str, Any] | None) -> str:
    """The verdict in capitals, empty where nothing was verified."""
    return str((verification or {}).get("verdict", "")).upper()


def policy_name(number: int) -> str:
    """What people call a policy of a debugging loop."""
    if number == 0:
        return "policy as given"
    return f"policy after {number} repair{'s' if number > 1 else ''}"


def open_faults(entries: list[dict[str, Any]], entry: dict[str, Any]) -> int | None:
    """Faults that a policy of a loop is known to have.

    ``faults_open`` is about the policy after the repair, where there was one.
    """
    if not entry.get("repair"):
        return entry.get("faults_open")
    place = entries.index(entry)
    before = int(entries[place - 1].get("faults_open", 0)) if place else 0
    return before + int(entry.get("faults_new", 0))


def _results(results: Results) -> Table:
    rows = [
        Row(
            str(row.get("name", "")),
            row.get("unsafe_rate"),
            row.get("goal_rate"),
            row.get("faults"),
            str(row.get("verdict") or "").upper(),
        )
        for row in results.rows
    ]
    return Table(results.title, rows)


def _named(title: str, name: str) -> str:
    return title if name == "." else f"{title} ({name})"


def _loop(loop: Loop) -> Table:
    entries = loop.iterations
    chosen = entries if len(entries) == 1 else [entries[0], entries[-1]]
    rows = [
        Row(
            policy_name(int(entry.get("number", 0))),
            entry.get("unsafe_rate"),
            entry.get("goal_rate"),
            open_faults(entries, entry),
            verdict_of(entry.get("verification")),
        )
        for entry in chosen
    ]
    return Table(_named("Debugging loop", loop.name), rows)


def _tests(tests: Tests) -> Table:
    records = tests.records
    best = next((record for record in reversed(records) if record.get("best")), records[-1])
    chosen = [("first test", records[0]), ("last test", records[-1]), ("safest model", best)]
    rows = [
        Row(
            f"{name}, {record['steps']:,} steps",
            record.get("unsafe_start_rate"),
            record.get("goal_rate"),
            record.get("faults_total", 0) - record.get("faults_fixed", 0),
        )
        for name, record in chosen
    ]
    return Table(_named("Training with safety tests", tests.name), rows)


def _training(training: Training) -> Table:
    first = training.history[0]
    rows = [Row(f"after {first['steps']:,} steps", goal=first.get("goal_rate"))]
    final = training.evaluation
    if final is not None:
        ends, unsafe = final.get("ends", {}), final.get("unsafe", {})
        goal = ends.get("goal", {}).get("value")
        rows.append(Row("final policy", unsafe.get("value"), goal))
    else:
        last = training.history[-1]
        rows.append(Row(f"after {last['steps']:,} steps", goal=last.get("goal_rate")))
    return Table(_named("Training", training.name), rows)
