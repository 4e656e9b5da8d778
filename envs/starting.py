"""Where episodes start: a stream of uniform start states, or a state somebody chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError, StateError
from safetest_gym.task import LISTABLE, Task

__all__ = ["CHUNK", "Preference", "StartStream", "chosen_start", "derived_seeds", "preference_of"]

CHUNK = 256
"""Start states drawn at once in the long run: so many that a draw's own cost is forgotten."""


def derived_seeds(random: np.random.Generator) -> tuple[int, int]:
    """Seeds of the steps and of the start states that follow from an environment's seed."""
    steps, starts = random.integers(2**63, size=2).tolist()
    return steps, starts


Preference = tuple[NDArray[np.int64], float]
"""Packed states (n, W), and the share of the start states that shall be one of them."""


class StartStream:
    """Start states of one environment, packed, in chunks that grow.

    The same states in the same order, whether fetched one by one or by the chunk.

    Attributes:
        preferred: per state of the latest chunk, is it one of those preferred?
    """

    def __init__(self, task: Task, seed: int) -> None:
        self._task = task
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._choice = np.random.Generator(np.random.PCG64([seed, 1]))
        self._preference: Preference | None = None
        self.preferred = np.zeros(0, np.bool_)
        self._size = 1
        self._begin(np.empty((0, task.engine.num_words), np.int64))

    def _begin(self, chunk: NDArray[np.int64]) -> None:
        self._chunk = chunk
        self._left = len(chunk)
        self._at = int(chunk.ctypes.data) - chunk.strides[0]

    def chunk(self) -> NDArray[np.int64]:
        """The next start states, (n, W)."""
        states = self._task.initial.sample(self._size, self._random)
        self._size = min(CHUNK, 16 * self._size)
        packed = self._task.engine.pack(states)
        self.preferred = np.zeros(len(packed), np.bool_)
        if self._preference is not None:
            pool, share = self._preference
            self.preferred = self._choice.random(len(packed)) < share
            packed[self.preferred] = pool[self._choice.integers(len(pool), size=len(packed))][
                self.preferred
            ]
        return packed

    def prefer(self, preference: Preference | None) -> None:
        """From the next chunk on, take a share of the states from a pool; None for none."""
        self._preference = preference

    def address(self) -> int:
        """Where the next start state is; good until the next call."""
        if not self._left:
            self._begin(self.chunk())
        self._left -= 1
        self._at += self._chunk.strides[0]
        return self._at

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_at"}
        used = len(self._chunk) - self._left
        return kept | {"_chunk": self._chunk[used:].copy()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._begin(self._chunk)


def preference_of(task: Task, states: NDArray[Any], share: float) -> Preference | None:
    """A share of start states from ``states`` (n, V); None if that is none.

    Raises:
        ConfigError: the share is none.
        StateError: one of them is no state of the task.
    """
    if not 0 <= share <= 1:
        raise ConfigError(f"share must be between 0 and 1, got {share}")
    if not len(states) or not share:
        return None
    return task.engine.pack(np.asarray(states, task.dtype)), share


def chosen_start(task: Task, options: Mapping[str, Any]) -> NDArray[Any]:
    """The state that reset options ask for: ``state``, or ``index`` into the start states."""
    if set(options) not in ({"state"}, {"index"}):
        raise ConfigError(f"reset options are either 'state' or 'index', got {list(options)}")
    if "index" in options:
        return _numbered_start(task, options["index"])
    given = options["state"]
    if not isinstance(given, Mapping):
        values = given.tolist() if isinstance(given, np.ndarray) else given
        values = list(values) if isinstance(values, Sequence) else values
        if not isinstance(values, list) or len(values) != task.num_variables:
            raise StateError(
                f"a state is a vector of {task.num_variables} values or a mapping, got {given!r}"
            )
        names = [variable.name for variable in task.variables]
        given = dict(zip(names, values, strict=True))
    return task.state(given)


def _numbered_start(task: Task, wanted: object) -> NDArray[Any]:
    try:
        number = index(wanted)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        raise ConfigError(f"'index' is the number of a start state, got {wanted!r}") from None
    count = task.initial.count()
    if count is None or not 0 <= number < count:
        of = "infinitely many" if count is None else str(count)
        raise StateError(f"there is no start state number {number} (there are {of})")
    if count > LISTABLE:
        raise StateError(
            f"{count} start states are too many to number them (limit {LISTABLE}); "
            "give options={'state': ...}"
        )
    found: NDArray[Any] = task.engine.unpack(task.listed_starts[number : number + 1])[0]
    return found
