"""Take one worker of this process away while a loop is at work."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

from safetest_gym.campaign.executors import Executor

__all__ = ["Assassin", "workers_of_this_process"]

_STOPPED = 0.5
"""Seconds from stopping a worker to killing it."""
_KINDS = ("ray::IDLE", "spawn_main", "ray::_do")
"""What the commands of workers have in them, those surely at work last."""


def workers_of_this_process() -> list[int]:
    """Descendants of this process that are spawned workers or those of Ray, idle ones first."""
    parents, commands = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(place.name)
            parents[pid] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            commands[pid] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue  # it has ended
    found: list[tuple[int, int]] = []
    for pid, command in commands.items():
        at: int | None = pid
        while at is not None and at != os.getpid():
            at = parents.get(at)
        kinds = [rank for rank, kind in enumerate(_KINDS) if kind in command]
        if at is not None and kinds:
            found.append((kinds[0], pid))
    return [pid for _, pid in sorted(found)]


class Assassin:
    """Kills a worker when half of the test of some policy is done.

    It is stopped first, so that it keeps the job that it has, or gets one. If there was none
    left, it dies unnoticed; then the next test's is killed.

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
        if number >= self.number and (workers := workers_of_this_process()):
            os.kill(workers[-1], signal.SIGSTOP)
            Timer(_STOPPED, _kill, workers[-1:]).start()
            self.number = number + 1

    def iteration(self, row: Any) -> None:
        """See `DebugWatch.iteration`."""


def _kill(worker: int) -> None:
    with suppress(ProcessLookupError):  # dismissed in the meantime
        os.kill(worker, signal.SIGKILL)
