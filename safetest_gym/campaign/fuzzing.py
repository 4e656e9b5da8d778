"""Runs of a fuzzer, shared by the workers of an executor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.campaign.executors import Executor
from safetest_gym.fuzzing import End, Fuzzer, Runs
from safetest_gym.fuzzing.fuzzer import BATCH

__all__ = ["fuzz"]

_Job = tuple[int, int | NDArray[Any]]
"""Number of the first run, and how many or from which states."""

_Arrays = tuple[NDArray[np.int64], ...]


def fuzz(
    fuzzer: Fuzzer,
    runs: int | NDArray[Any],
    executor: Executor,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Runs:
    """What ``fuzzer.run(runs)`` gives, or ``fuzzer.run_from(runs)`` for states (n, V).

    Args:
        progress: called with runs done and unsafe runs among them.
    """
    count = runs if isinstance(runs, int) else len(runs)
    firsts = range(0, count, BATCH)
    jobs: list[_Job] = [
        (first, min(BATCH, count - first) if isinstance(runs, int) else runs[first : first + BATCH])
        for first in firsts
    ]
    deadline = time.monotonic() + fuzzer.budget.seconds
    parts: list[Runs] = []
    done = unsafe = 0
    for arrays in executor.map(_FuzzWork(fuzzer), jobs):
        parts.append(Runs(fuzzer.task, *arrays))
        done += len(parts[-1])
        unsafe += parts[-1].count(End.FAILING)
        if progress is not None:
            progress(done, unsafe)
        if time.monotonic() >= deadline:
            break
    return Runs.join(fuzzer.task, parts)


@dataclass(frozen=True, slots=True)
class _FuzzWork:
    fuzzer: Fuzzer

    def open(self) -> Callable[[_Job], _Arrays]:
        return self._run

    def _run(self, job: _Job) -> _Arrays:
        first, what = job
        if isinstance(what, int):
            runs = self.fuzzer.run(what, first=first)
        else:
            runs = self.fuzzer.run_from(what, first=first)
        return runs.words, runs.actions, runs.offsets, runs.ends, runs.indices
