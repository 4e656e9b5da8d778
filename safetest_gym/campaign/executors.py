"""Where work is done: here, in processes of this machine, or on a Ray cluster.

An executor maps jobs to answers, in order. Work is pickled once and opened once per worker;
a job that was lost with its worker is done again, and answers are taken once, so that results
are the same on all executors.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, get_args

from safetest_gym.errors import ConfigError

__all__ = ["Executor", "ExecutorName", "SerialExecutor", "Work", "make_executor"]

ExecutorName = Literal["serial", "processes", "ray"]

_Job = TypeVar("_Job")
_Job_contra = TypeVar("_Job_contra", contravariant=True)
_Answer = TypeVar("_Answer")
_Answer_co = TypeVar("_Answer_co", covariant=True)


class Work(Protocol[_Job_contra, _Answer_co]):
    """What is to be done with jobs; picklable, and so are jobs and answers.

    An answer may depend on nothing but work and job.
    """

    def open(self) -> Callable[[_Job_contra], _Answer_co]:
        """Called once in each worker: build what all its jobs share."""
        ...


class Executor(ABC):
    """Does jobs; a context manager that gives its workers back.

    Attributes:
        workers: how many jobs are done at a time.
        lost: workers that were lost so far; their jobs were done again.
    """

    workers: int = 1
    lost: int = 0

    @abstractmethod
    def map(self, work: Work[_Job, _Answer], jobs: Sequence[_Job]) -> Iterator[_Answer]:
        """Answers in the order of the jobs, each as soon as those before it are there.

        Closing the iterator cancels what is not done yet. What a job raises is raised here
        when its turn comes.

        Raises:
            WorkerError: a job's worker was lost again and again.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the workers back; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class SerialExecutor(Executor):
    """Does one job after the other, in this process."""

    def map(self, work: Work[_Job, _Answer], jobs: Sequence[_Job]) -> Iterator[_Answer]:
        """See `Executor.map`; each job is done when its answer is asked for."""
        if len(jobs):
            yield from map(work.open(), jobs)

    def close(self) -> None:
        """There is nothing to give back."""


def make_executor(
    name: ExecutorName, *, workers: int | None = None, address: str | None = None
) -> Executor:
    """An executor by name.

    Args:
        workers: by default one per processor that may be used.
        address: of a Ray cluster to join (``host:port``, ``auto``); otherwise ``ray`` starts
            one on this machine and ends it when it is closed.
    """
    if name not in get_args(ExecutorName):
        raise ConfigError(f"executor must be one of {get_args(ExecutorName)}, got {name!r}")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if address is not None and name != "ray":
        raise ConfigError(f"address is for executor ray only, not {name}")
    if name == "serial":
        if workers not in (None, 1):
            raise ConfigError("executor serial has one worker; take processes or ray for more")
        return SerialExecutor()
    if name == "processes":
        from safetest_gym.campaign.processes import ProcessExecutor

        return ProcessExecutor(workers or usable_processors())
    from safetest_gym.campaign.ray_cluster import RayExecutor

    return RayExecutor(workers, address)


def usable_processors() -> int:
    """Processors that this process may use."""
    mask: Any = getattr(os, "sched_getaffinity", None)
    return len(mask(0)) if mask is not None else os.cpu_count() or 1
