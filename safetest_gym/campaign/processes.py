"""Jobs in processes of this machine, each new (spawned) and with a pipe of its own."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from safetest_gym.campaign.crew import answer, in_order
from safetest_gym.campaign.executors import Executor, Work
from safetest_gym.errors import ConfigError

__all__ = ["ProcessExecutor"]

_Job = TypeVar("_Job")
_Answer = TypeVar("_Answer")


@dataclass(slots=True, eq=False)
class _Worker:
    """A process, our end of its pipe, and the number of its job (-1: none)."""

    process: SpawnProcess
    pipe: Connection
    number: int = -1

    @classmethod
    def start(cls) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()  # so that its end is the end of the pipe
        return cls(process, ours)

    def stop(self) -> None:
        """End it at once, whatever it does; it holds nothing that anybody needs."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


class ProcessExecutor(Executor):
    """Processes that live until the executor is closed, started when they are needed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._idle: list[_Worker] = []
        self._folder = TemporaryDirectory(prefix="safetest-")
        self._maps = 0

    def map(self, work: Work[_Job, _Answer], jobs: Sequence[_Job]) -> Iterator[_Answer]:
        """See `Executor.map`."""
        if not len(jobs):
            return
        self._maps += 1
        path = Path(self._folder.name) / f"work-{self._maps}.pickle"
        path.write_bytes(_pickled(work))
        crew = _ProcessCrew(self.workers, self._idle, str(path))
        try:
            yield from in_order(crew, jobs, self._count_lost)
        finally:
            crew.dismiss()
            path.unlink(missing_ok=True)

    def _count_lost(self) -> None:
        self.lost += 1

    def close(self) -> None:
        """See `Executor.close`."""
        while self._idle:
            self._idle.pop().stop()
        self._folder.cleanup()


class _ProcessCrew:
    """The workers of one map; those that are idle go back to the executor."""

    def __init__(self, workers: int, idle: list[_Worker], path: str) -> None:
        self.workers = workers
        self._idle, self._path = idle, path
        self._at_work: list[_Worker] = []

    @property
    def busy(self) -> int:
        """See `Crew.busy`."""
        return len(self._at_work)

    def begin(self, number: int, job: Any) -> None:
        """See `Crew.begin`."""
        data = pickle.dumps((self._path, job), protocol=pickle.HIGHEST_PROTOCOL)
        worker = self._idle.pop() if self._idle else _Worker.start()
        worker.number = number
        self._at_work.append(worker)
        with suppress(OSError):  # it is lost then: its pipe says so when we wait
            worker.pipe.send_bytes(data)

    def wait(self) -> list[tuple[int, bytes | None]]:
        """See `Crew.wait`."""
        ready = set(wait([worker.pipe for worker in self._at_work]))
        done: list[tuple[int, bytes | None]] = []
        for worker in [one for one in self._at_work if one.pipe in ready]:
            self._at_work.remove(worker)
            try:
                data: bytes | None = worker.pipe.recv_bytes()
                self._idle.append(worker)
            except (EOFError, OSError):
                data = None
                worker.stop()
            done.append((worker.number, data))
        return done

    def dismiss(self) -> None:
        """Cancel what is still being done."""
        while self._at_work:
            self._at_work.pop().stop()


def _pickled(work: Any) -> bytes:
    try:
        return pickle.dumps(work, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"processes cannot share this policy or task: {error} (lambdas and functions inside "
            "functions cannot be sent; executor serial needs nothing to be sent)"
        ) from error


def _serve(pipe: Connection) -> None:
    """A worker's life: jobs in, answers out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what a Ctrl-C ends
    try:
        while True:
            path, job = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(answer(lambda: _opened(path)(job)))  # noqa: B023  # called at once
    except (EOFError, OSError):
        return


@lru_cache(maxsize=1)
def _opened(path: str) -> Callable[[Any], Any]:
    work: Work[Any, Any] = pickle.loads(Path(path).read_bytes())
    return work.open()
