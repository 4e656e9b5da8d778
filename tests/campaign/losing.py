"""Take one worker of this process away while a loop is at work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

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

    Attributes:
        victims: the process that was killed, if any.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.victims: list[int] = []

    def step(self, number: int, name: str, done: float) -> None:
        """See `DebugWatch.step`."""
        if number != self.number or name != "test" or done < 0.5 or self.victims:
            return
        if workers := workers_at_work():
            os.kill(workers[-1], signal.SIGKILL)
            self.victims.append(workers[-1])

    def iteration(self, row: Any) -> None:
        """See `DebugWatch.iteration`."""
