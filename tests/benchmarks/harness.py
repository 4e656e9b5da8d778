"""Measure named pieces of work, each in a process of its own, and compare within one run.

A benchmark module maps names to functions and calls `main`; run it from the checkout as
``python -m tests.benchmarks.speed_engine``. Times are CPU seconds, so that a busy machine
disturbs little; only ratios of one run are compared with their targets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = [
    "SHARED",
    "Facts",
    "Report",
    "Runner",
    "main",
]

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"

Facts = dict[str, Any]
Work = Callable[..., Facts]


@dataclass(frozen=True, slots=True)
class Runner:
    """Starts the works of one benchmark module, one process each.

    Attributes:
        kept: JSON Lines of what works returned; those that are there are not done again.
    """

    module: str
    cap_seconds: float = 300.0
    kept: Path | None = None

    def run(
        self, name: str, *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> Facts | None:
        """Return what the work returned, or None when it did not end within the cap."""
        if self.kept is None:
            return self._run(name, environment, options)
        key = {"work": name, "environment": dict(environment or {}), "options": options}
        lines = self.kept.read_text("utf-8").splitlines() if self.kept.exists() else []
        for entry in map(json.loads, lines):
            if entry["key"] == key:
                found: Facts = entry["facts"]
                return found
        facts = self._run(name, environment, options)
        if facts is not None:
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "facts": facts}) + "\n")
        return facts

    def _run(
        self, name: str, environment: Mapping[str, str] | None, options: dict[str, Any]
    ) -> Facts | None:
        command = [sys.executable, "-m", self.module, "--work", name, json.dumps(options)]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                capture_output=True,
                text=True,
                timeout=self.cap_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            raise RuntimeError(f"{name} {options} failed:\n{done.stderr}")
        facts: Facts = json.loads(done.stdout.splitlines()[-1])
        return facts


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison: ``ratio`` should be at least ``target``."""

    name: str
    measured: str
    ratio: float | None
    target: float | None


@dataclass(slots=True)
class Report:
    """Rows for people, facts for machines."""

    title: str
    rows: list[Row] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(
        self, name: str, measured: str, *, ratio: float | None = None, target: float | None = None
    ) -> None:
        """Add one comparison and show it at once on standard error."""
        self.rows.append(Row(name=name, measured=measured, ratio=ratio, target=target))
        shown = "" if ratio is None else f" ratio {ratio:.2f}"
        print(f"{name}: {measured}{shown}", file=sys.stderr, flush=True)

    def show(self) -> None:
        """Print all rows as a table."""
        table = Table(title=self.title)
        for header in ("work", "measured", "ratio", "target", "reached"):
            table.add_column(header, justify="right" if header in ("ratio", "target") else "left")
        for row in self.rows:
            table.add_row(
                row.name,
                row.measured,
                "" if row.ratio is None else f"{row.ratio:.2f}",
                "" if row.target is None else f"{row.target:g}",
                "" if row.target is None else "yes" if (row.ratio or 0) >= row.target else "NO",
            )
        Console().print(table)

    def write(self, path: Path) -> None:
        """Write rows and facts as JSON."""
        rows = [asdict(row) for row in self.rows]
        data = {"title": self.title, "rows": rows, "facts": self.facts}
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def main(
    module: str,
    works: Mapping[str, Work],
    plan: Callable[[Runner, frozenset[str]], Report],
) -> None:
    """Run one work in this process (``--work NAME OPTIONS``), or the plan.

    Other arguments: names of the plan's parts to run (default all), ``--out FILE`` for the
    report as JSON, ``--keep FILE`` to go on where a run with the same file was ended.
    """
    arguments = sys.argv[1:]
    if arguments[:1] == ["--work"]:
        print(json.dumps(works[arguments[1]](**json.loads(arguments[2]))))
        return
    out, kept = _take(arguments, "--out"), _take(arguments, "--keep")
    report = plan(Runner(module, kept=kept), frozenset(arguments))
    report.show()
    if out is not None:
        report.write(out)


def _take(arguments: list[str], name: str) -> Path | None:
    """Remove an option with its file from the arguments."""
    if name not in arguments:
        return None
    place = arguments.index(name)
    file = Path(arguments[place + 1])
    del arguments[place : place + 2]
    return file
