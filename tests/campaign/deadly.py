"""Work and policies that take their worker with them, once or always."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import StateError
from safetest_gym.policies import Interface, RandomPolicy

__all__ = ["DeadlyPolicy", "Squares"]


def die() -> None:
    """End this process as the kernel does when memory is used up."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Squares:
    """Squares its jobs, and writes into ``notes`` what happens.

    Attributes:
        deadly: jobs that kill their worker when they are tried for the first time.
        hopeless: a job that kills its worker every time.
        wrong: a job that raises.
    """

    notes: Path
    deadly: tuple[int, ...] = ()
    hopeless: int = -1
    wrong: int = -1
    pause: float = 0.0

    def open(self) -> Callable[[int], int]:
        self.note("open")
        return self.do

    def do(self, job: int) -> int:
        first = self.note(f"job {job}")
        if job == self.wrong:
            raise StateError(f"job {job} is wrong")
        if (job in self.deadly and first) or job == self.hopeless:
            die()
        time.sleep(self.pause * (job % 3))
        return job * job

    def note(self, what: str) -> bool:
        """Leave a file named for it; was there none?"""
        number = len(list(self.notes.glob(f"{what} *")))
        (self.notes / f"{what} {number} {os.getpid()}").touch()
        return number == 0

    def count(self, what: str) -> int:
        """How often it happened."""
        return len(list(self.notes.glob(f"{what} *")))


@dataclass(eq=False)
class DeadlyPolicy:
    """A random policy whose ``after``-th answer kills its process, but only one, not this one."""

    inner: RandomPolicy
    marker: Path
    after: float
    spared: int
    asked: int = 0

    @classmethod
    def of(cls, interface: Interface, marker: Path, after: float = 30) -> DeadlyPolicy:
        return cls(RandomPolicy(interface, 1), marker, after, os.getpid())

    @property
    def interface(self) -> Interface:
        return self.inner.interface

    def bind(self, task: Any) -> DeadlyPolicy:
        return self

    def native(self) -> None:
        return None

    def actions(self, states: NDArray[Any], applicable: NDArray[np.bool_]) -> NDArray[np.int64]:
        self.asked += 1
        if self.asked == self.after and os.getpid() != self.spared:
            try:
                self.marker.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                die()
        return self.inner.actions(states, applicable)
