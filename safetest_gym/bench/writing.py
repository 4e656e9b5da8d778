"""Results as files: Markdown for people, CSV for other programs, figures as SVG."""

from __future__ import annotations

import csv
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetest_gym.bench.experiment import EXPERIMENTS, Experiment, Findings, Row, Setting, Table
from safetest_gym.replacing import replace_file
from safetest_gym.reports.environment import environment

__all__ = ["Record", "markdown_table", "write_findings"]

_MOST_CSV = 200
"""Facts longer than this, such as one time per state, stay in ``cells.jsonl`` only."""


def _load() -> tuple[float, ...]:
    """Load averages of 1, 5 and 15 minutes, where the system has them."""
    return os.getloadavg() if hasattr(os, "getloadavg") else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Of a run of the experiment: what was asked for, and the machine's load when it began."""

    command: tuple[str, ...]
    setting: Setting
    load: tuple[float, ...] = field(default_factory=_load)
    began: float = field(default_factory=time.monotonic)


def markdown_table(table: Table) -> str:
    """A table, its first column to the left.

    >>> print(markdown_table(Table("Speed", ["who", "k/s"], [["ours", "300"]])))
    | who | k/s |
    | --- | ---: |
    | ours | 300 |
    """
    rule = ["---", *["---:"] * (len(table.heads) - 1)]
    lines = [table.heads, rule, *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_findings(
    experiment: Experiment,
    findings: Findings,
    rows: Sequence[Row],
    folder: Path,
    record: Record,
) -> None:
    """Write NAME.md, cells.csv and NAME-FIGURE.svg."""
    for name, figure in findings.figures.items():
        _write(folder / f"{experiment.name}-{name}.svg", figure.svg() + "\n")
    _write_csv(folder / f"{experiment.name}.csv", rows)
    text = "\n".join(_markdown(experiment, findings, record))
    _write(folder / f"{experiment.name}.md", text)


def _write(path: Path, text: str) -> None:
    replace_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def _markdown(experiment: Experiment, findings: Findings, record: Record) -> Iterator[str]:
    about = EXPERIMENTS[experiment.name]
    yield f"# {experiment.name.replace('_', '-')}: {about}\n"
    for table in findings.tables:
        yield f"## {table.title}\n\n{markdown_table(table)}\n"
    for name, figure in findings.figures.items():
        yield f"![{figure.title}]({experiment.name}-{name}.svg)\n"
    for note in findings.notes:
        yield f"- {note}"
    yield "\n## How it was measured\n"
    yield f"- command: `{shlex.join(record.command)}`"
    yield f"- seed {record.setting.seed}, {'quick' if record.setting.quick else 'full'}"
    yield f"- {'; '.join(f'{name} {value}' for name, value in environment())}"
    if record.load:
        before, after = ("/".join(f"{value:.1f}" for value in load) for load in _loads(record))
        yield f"- load averages over 1/5/15 minutes: {before} at the beginning, {after} at the end"
    yield f"- {time.monotonic() - record.began:.0f} s for what was not measured before"
    yield "- times are CPU seconds of one process, unless said otherwise\n"


def _loads(record: Record) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return record.load, _load()


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line per cell; its keys, then its facts."""
    flat = [{**_flat("", row.cell), **_flat("", row.facts or {})} for row in rows]
    names = list(dict.fromkeys(name for line in flat for name in line))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)


def _flat(prefix: str, data: dict[str, Any]) -> dict[str, Any]:
    """Nested dictionaries as one, names joined by dots."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            flat |= _flat(f"{prefix}{name}.", value)
        elif len(str(value)) <= _MOST_CSV:
            flat[prefix + name] = value
    return flat
