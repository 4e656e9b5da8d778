"""Workers elsewhere: jobs go out, answers come back in any order or not at all."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from safetest_gym.errors import SafetestError, WorkerError

__all__ = ["Crew", "answer", "in_order"]

MOST_LOSSES = 3
"""Workers that one job may take with it."""

_AHEAD = 4
"""Jobs per worker that may be done before the answer whose turn it is."""


class Crew(Protocol):
    """Workers that do numbered jobs."""

    @property
    def workers(self) -> int:
        """How many there are."""
        ...

    @property
    def busy(self) -> int:
        """How many have a job."""
        ...

    def begin(self, number: int, job: Any) -> None:
        """Hand out a job; only if not all are busy."""
        ...

    def wait(self) -> Iterable[tuple[int, bytes | None]]:
        """Wait for an answer or more; None if the job's worker is lost (and replaced)."""
        ...


def answer(do: Callable[[], Any]) -> bytes:
    """In a worker: what a job gave or raised, pickled."""
    try:
        return pickle.dumps((True, do()), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        if not isinstance(error, SafetestError):
            error.add_note(f"In a worker:\n{traceback.format_exc()}")
        try:
            data = pickle.dumps((False, error))
            pickle.loads(data)
        except Exception:
            text = "".join(traceback.format_exception(error))
            data = pickle.dumps((False, RuntimeError(f"in a worker:\n{text}")))
        return data


def in_order(crew: Crew, jobs: Sequence[Any], tell_lost: Callable[[], None]) -> Iterator[Any]:
    """Answers in the order of the jobs; lost jobs are handed out again."""
    answers: dict[int, bytes] = {}
    losses: dict[int, int] = {}
    begun = 0
    for number in range(len(jobs)):
        while True:
            last = min(len(jobs), number + _AHEAD * crew.workers)
            while begun < last and crew.busy < crew.workers:
                crew.begin(begun, jobs[begun])
                begun += 1
            if number in answers:
                break
            for ended, data in crew.wait():
                if data is not None:
                    answers[ended] = data
                    continue
                tell_lost()
                losses[ended] = losses.get(ended, 0) + 1
                if losses[ended] == MOST_LOSSES:
                    raise WorkerError(
                        f"job {ended} was lost with its worker {MOST_LOSSES} times: was the memory "
                        "used up? (fewer workers need less; a script that starts processes needs "
                        "its own work below `if __name__ == '__main__':`)"
                    )
                crew.begin(ended, jobs[ended])
        fine, value = pickle.loads(answers.pop(number))
        if not fine:
            raise value
        yield value
