"""Was the policy made for the task it is now asked about?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["note_other_task"]

_FILES = ("run.json", "loop.json")
"""Of a training and of a debugging loop; they say whose task it was."""


def note_other_task(policy: Path, task: Task) -> None:
    """Say on standard error if the policy's folder is about another task.

    That may be intended, since a policy runs on any task that has its variables and actions;
    more often a constant was forgotten.
    """
    for name in _FILES:
        try:
            data = json.loads((policy.parent / name).read_text(encoding="utf-8"))
            digest, made_for = data["digest"], data["task"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if digest != task.digest:
            print(
                f"note: {policy} was made for {made_for}, and this is {task.name} with other "
                "constants, another property or another mode; were options forgotten?",
                file=sys.stderr,
            )
        return
