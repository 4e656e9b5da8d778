"""CPU time and memory of this process, which a busy machine disturbs little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Stopwatch", "peak_megabytes", "stopwatch"]


@dataclass(slots=True)
class Stopwatch:
    """CPU seconds of this process, measured by `stopwatch`."""

    seconds: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure the CPU time spent inside."""
    watch = Stopwatch()
    before = time.process_time()
    try:
        yield watch
    finally:
        watch.seconds = time.process_time() - before


def peak_megabytes() -> float:
    """The most memory this process held since it began; NaN where the system does not tell.

    Not ``getrusage``: there a process begins with what the one that started it held.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return float("nan")
