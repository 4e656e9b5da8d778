"""One self-contained HTML file about whatever a training, a test or a loop left in a folder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.reports.report import ReportConfig, write_report
    from safetest_gym.reports.task_file import TaskSource, write_task_file

__all__ = ["ReportConfig", "TaskSource", "write_report", "write_task_file"]

_HOMES = {
    "ReportConfig": "report",
    "TaskSource": "task_file",
    "write_report": "report",
    "write_task_file": "task_file",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"safetest_gym.reports.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
