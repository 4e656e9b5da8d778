"""What is on the page, and its template."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from safetest_gym.jani import format_expression
from safetest_gym.reports.cards import FaultCard
from safetest_gym.reports.curves import Chart, Series
from safetest_gym.reports.environment import environment
from safetest_gym.reports.episodes import FuzzRow
from safetest_gym.reports.fault_file import FaultList
from safetest_gym.reports.player import Film
from safetest_gym.reports.setting import Setting
from safetest_gym.reports.sources import Loop, Sources, Tests, Training
from safetest_gym.reports.summary import Table, open_faults, policy_name, summary_tables, verdict_of

__all__ = ["Page", "StoreSection", "render"]

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class StoreSection:
    """The faults of a store."""

    faults: FaultList
    cards: list[FaultCard]
    map: dict[str, Any] | None


@dataclass(slots=True)
class Page:
    """Everything that is shown.

    Attributes:
        unknown_tasks: names of tasks that were not found again.
        problems: what could not be done, in sentences.
    """

    sources: Sources
    faults: list[FaultList]
    problems: list[str]
    settings: list[Setting] = field(default_factory=list)
    unknown_tasks: list[str] = field(default_factory=list)
    stores: list[StoreSection] = field(default_factory=list)
    fuzzing: list[FuzzRow] = field(default_factory=list)
    films: list[Film] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The task if there is only one, else the folder."""
        names = {setting.task.name for setting in self.settings}
        names |= {faults.task for faults in self.faults}
        names |= {str(loop.data.get("task")) for loop in self.sources.loops}
        names |= {str(training.options.get("task")) for training in self.sources.trainings}
        return names.pop() if len(names) == 1 else self.sources.directory.resolve().name

    @property
    def tables(self) -> list[Table]:
        """Before and after."""
        return summary_tables(self.sources, self.faults)

    @property
    def conditions(self) -> list[tuple[str, str, str]]:
        """Per task: its name, what fails and what is the goal."""
        found = []
        for setting in self.settings:
            asked = setting.task.property
            texts = ["" if c is None else format_expression(c) for c in (asked.failure, asked.goal)]
            found.append((setting.task.name, texts[0], texts[1]))
        return found


def render(page: Page) -> str:
    """The page as HTML."""
    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["percent"] = _percent
    templates.filters["policy_name"] = policy_name
    templates.filters["verdict_of"] = verdict_of
    return templates.get_template("page.html").render(
        page=page,
        tests=[(tests, _test_charts(tests)) for tests in page.sources.tests if tests.records],
        trainings=[(found, _training_charts(found)) for found in page.sources.trainings],
        loops=[(loop, _loop_charts(loop)) for loop in page.sources.loops if loop.iterations],
        films=[film.data for film in page.films],
        maps=[store.map for store in page.stores],
        environment=environment(),
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def _column(records: list[dict[str, Any]], name: str) -> list[float]:
    return [float(record.get(name, 0.0)) for record in records]


def _test_charts(tests: Tests) -> list[Chart]:
    records = tests.records
    steps = _column(records, "steps")
    marks = [float(repair["steps"]) for repair in tests.repairs if repair.get("kept")]
    fixed = _column(records, "faults_fixed")
    total = _column(records, "faults_total")
    return [
        Chart(
            "Rates of the policy in training",
            "environment steps",
            steps,
            [
                Series("unsafe start states", _column(records, "unsafe_start_rate")),
                Series("runs to the goal", _column(records, "goal_rate")),
                Series("unsafe fuzzed runs", _column(records, "unsafe_run_rate")),
            ],
            marks=marks,
            mark_name="a repair was kept",
        ),
        Chart(
            "Faults known",
            "environment steps",
            steps,
            [
                Series("open", [a - b for a, b in zip(total, fixed, strict=True)]),
                Series("found so far", total),
            ],
            percent=False,
            marks=marks,
            mark_name="a repair was kept",
        ),
    ]


def _training_charts(training: Training) -> list[Chart]:
    history = training.history
    if not history:
        return []
    return [
        Chart(
            "Rates of the policy in training",
            "environment steps",
            _column(history, "steps"),
            [
                Series("runs that fail", _column(history, "failure_rate")),
                Series("runs to the goal", _column(history, "goal_rate")),
            ],
        )
    ]


def _loop_charts(loop: Loop) -> list[Chart]:
    entries = loop.iterations
    if len(entries) < 2:
        return []
    numbers = _column(entries, "number")
    return [
        Chart(
            "Rates of each policy",
            "repairs",
            numbers,
            [
                Series("unsafe start states", _column(entries, "unsafe_rate")),
                Series("runs to the goal", _column(entries, "goal_rate")),
            ],
        ),
        Chart(
            "Faults",
            "repairs",
            numbers,
            [
                Series("of this policy", [float(open_faults(entries, e) or 0) for e in entries]),
                Series("found so far", _column(entries, "faults_total")),
            ],
            percent=False,
        ),
    ]
