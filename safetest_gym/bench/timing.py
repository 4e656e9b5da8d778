"""CPU time and memory of this process, which a busy machine disturbs little."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    """The most memory this process held since it began; NaN where that is not told."""
    try:
        import resource
    except ImportError:  # not a Unix
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
