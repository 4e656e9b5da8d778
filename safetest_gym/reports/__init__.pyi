from .report import ReportConfig, write_report
from .task_file import TaskSource, write_task_file

__all__ = [
    "ReportConfig",
    "TaskSource",
    "write_report",
    "write_task_file",
]
