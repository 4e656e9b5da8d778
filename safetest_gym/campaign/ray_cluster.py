"""Jobs on a Ray cluster: one started on this machine, or one to join.

The machines of a cluster need this package in the same version.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from socket import create_connection
from typing import Any, TypeVar

from safetest_gym.campaign.crew import answer, in_order
from safetest_gym.campaign.executors import Executor, Work, usable_processors
from safetest_gym.errors import ConfigError, WorkerError

__all__ = ["RayExecutor"]

_PATIENCE = 10.0
"""Seconds to wait for a cluster to answer."""

_Job = TypeVar("_Job")
_Answer = TypeVar("_Answer")


class RayExecutor(Executor):
    """Ray tasks, as many at a time as there are workers."""

    def __init__(self, workers: int | None, address: str | None) -> None:
        ray = _import_ray()
        self._ours = not ray.is_initialized()
        if not self._ours and address is not None:
            raise ConfigError("this process has joined a Ray cluster before: leave address out")
        if self._ours:
            _join(ray, workers, address)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(self, work: Work[_Job, _Answer], jobs: Sequence[_Job]) -> Iterator[_Answer]:
        """See `Executor.map`."""
        if not len(jobs):
            return
        crew = _RayCrew(self.workers, work)
        try:
            yield from in_order(crew, jobs, self._count_lost)
        finally:
            crew.dismiss()

    def _count_lost(self) -> None:
        self.lost += 1

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        if self._ours:
            self._ours = False
            _import_ray().shutdown()


class _RayCrew:
    """Tasks of one map that are under way."""

    def __init__(self, workers: int, work: Any) -> None:
        ray = _import_ray()
        self.workers = workers
        # In a list Ray hands on the reference instead of a copy; a worker fetches it once.
        self._work = [ray.put(ray.cloudpickle.dumps(work))]
        self._task = ray.remote(num_cpus=1, max_retries=0)(_do)
        self._under_way: dict[Any, int] = {}

    @property
    def busy(self) -> int:
        """See `Crew.busy`."""
        return len(self._under_way)

    def begin(self, number: int, job: Any) -> None:
        """See `Crew.begin`."""
        self._under_way[self._task.remote(self._work, job)] = number

    def wait(self) -> list[tuple[int, bytes | None]]:
        """See `Crew.wait`."""
        ray = _import_ray()
        ready, _ = ray.wait(list(self._under_way), num_returns=1)
        done: list[tuple[int, bytes | None]] = []
        for task in ready:
            number = self._under_way.pop(task)
            try:
                done.append((number, ray.get(task)))
            except ray.exceptions.RayTaskError as error:  # ours are answers: Ray cannot start it
                raise WorkerError(f"Ray cannot do job {number}: {error}") from error
            except ray.exceptions.RayError:
                done.append((number, None))
        return done

    def dismiss(self) -> None:
        """Cancel what is still being done."""
        ray = _import_ray()
        while self._under_way and ray.is_initialized():
            ray.cancel(self._under_way.popitem()[0], force=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "executor ray needs Ray: pip install 'safetest-gym[ray]', or take processes"
        ) from None
    return ray


def _join(ray: Any, workers: int | None, address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked to report home
        processors = workers or usable_processors()
        ray.init(address="local", num_cpus=processors, include_dashboard=False, **quiet)
        return
    try:
        if address != "auto":  # Ray itself tries for minutes
            host, _, port = address.removeprefix("ray://").rpartition(":")
            create_connection((host, int(port)), timeout=_PATIENCE).close()
        ray.init(address=address, **quiet)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster at {address} lets us in: {error} (a cluster with tokens wants "
            "RAY_AUTH_MODE and RAY_AUTH_TOKEN to be set as on its machines)"
        ) from error


def _do(work: list[Any], job: Any) -> bytes:
    """In a worker."""
    return answer(lambda: _opened(work[0])(job))


@lru_cache(maxsize=1)
def _opened(reference: Any) -> Callable[[Any], Any]:
    ray = _import_ray()
    work: Work[Any, Any] = ray.cloudpickle.loads(ray.get(reference))
    return work.open()
