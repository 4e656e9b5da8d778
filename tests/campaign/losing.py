"""Take one worker of this process away while a loop is at work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from safetest_gym.campaign.executors import Executor

__all__ = ["Assassin", "workers_at_work"]


def workers_at_work() -> list[int]:
    """Descendants of this process that are spawned workers, or do a Ray task."""
    parents, commands = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(place.name)
            parents[pid] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            commands[pid] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue  # it has ended
    found = []
    for pid, command in commands.items():
        at: int | None = pid
        while at is not None and at != os.getpid():
            at = parents.get(at)
        if at is not None and ("ray::_do" in command or "spawn_main" in command):
            found.append(pid)
    return sorted(found)


class Assassin:
    """Kills a worker that is at work when half of the test of some policy is done.

    A worker that has just answered its last job dies unnoticed; then the next test's is killed.

    Attributes:
        number: the first policy in whose test that is done.
        executor: whose worker it is; none where nothing is to be killed.
    """

    def __init__(self, number: int, executor: Executor | None) -> None:
        self.number, self.executor = number, executor

    def step(self, number: int, name: str, done: float) -> None:
        """See `DebugWatch.step`."""
        if self.executor is None or self.executor.lost or name != "test" or done < 0.5:
            return
        if number >= self.number and (workers := workers_at_work()):
            os.kill(workers[-1], signal.SIGKILL)
            self.number = number + 1

    def iteration(self, row: Any) -> None:
        """See `DebugWatch.iteration`."""
