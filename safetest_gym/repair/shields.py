"""Shields: masks that keep a learner or a policy from actions known to be wrong.

A shield permits actions of exact states. It never leaves a state without an applicable
action: where everything would be forbidden it steps aside, and counts that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.base import NOT_APPLICABLE, PART
from safetest_gym.errors import ConfigError, SafetestError

if TYPE_CHECKING:
    from safetest_gym.faults.fault import Fault
    from safetest_gym.task import Task

__all__ = [
    "CombinedShield",
    "DeciderShield",
    "FaultShield",
    "RememberingShield",
    "Shield",
    "ShieldError",
    "require_same_task",
]

State = NDArray[Any]
Mask = NDArray[np.bool_]
Data = dict[str, Any]

REMEMBERED = 500_000
"""States whose masks are kept; then the memory starts anew."""


class ShieldError(SafetestError, ValueError):
    """A shield that belongs to another task, or a file that holds none."""


class Shield(ABC):
    """What every shield offers; picklable, so that it can go to other processes.

    Masks are True where an action is permitted; an action that is not applicable may be
    either. Environments and policies intersect them with the applicable actions.
    """

    kind: ClassVar[str]

    def __init__(self, task: Task) -> None:
        self.task = task

    @abstractmethod
    def mask(self, state: State) -> Mask:
        """Which actions are permitted in a state (V,), as (num_actions,); do not change it."""

    @abstractmethod
    def mask_many(self, states: State) -> Mask:
        """The same for states (n, V), as a fresh (n, num_actions)."""

    @abstractmethod
    def report(self) -> dict[str, int]:
        """Counts that say what the shield has done."""

    @abstractmethod
    def to_data(self) -> tuple[Data, dict[str, NDArray[Any]]]:
        """Plain options and arrays, for a file."""

    @classmethod
    @abstractmethod
    def from_data(cls, task: Task, options: Data, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `to_data`."""

    def allowed(self, states: State) -> Mask:
        """Actions of states (n, V) that are applicable and permitted; all where that is none."""
        applicable = self.task.applicable_many(states)
        return _narrowed(applicable, self.mask_many(states))


def _single(shield: Shield) -> tuple[Shield, ...]:
    return shield.parts if isinstance(shield, CombinedShield) else (shield,)


def require_same_task(shield: Shield, task: Task) -> None:
    """Refuse a shield that was made for another task."""
    if shield.task.digest == task.digest:
        return
    difference = _difference(shield.task.actions, task.actions)
    raise ShieldError(
        f"the shield was made for {shield.task.name}{difference} and not for this {task.name}: "
        "model, constants, conditions and action mode must be the same; make the shield from "
        "this task"
    )


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> str:
    if tuple(theirs) == tuple(ours):
        return ""
    return f" (actions {', '.join(theirs)}; here {', '.join(ours)})"


def _narrowed(masks: Mask, permitted: Mask) -> Mask:
    """Both, but the first alone in rows where both leave nothing."""
    narrowed: Mask = masks & permitted
    empty = ~narrowed.any(axis=1)
    narrowed[empty] = masks[empty]
    return narrowed


def state_key(task: Task, state: State) -> bytes:
    """The same bytes for equal states; adding 0 turns -0.0 into 0.0."""
    return (np.asarray(state, task.dtype) + 0).tobytes()


class FaultShield(Shield):
    """Forbids exactly the (state, action) pairs of known faults."""

    kind: ClassVar[str] = "faults"

    def __init__(self, task: Task, faults: Iterable[Fault] = ()) -> None:
        super().__init__(task)
        self._masks: dict[bytes, Mask] = {}
        self._open = np.ones(task.num_actions, np.bool_)
        self._open.flags.writeable = False
        self._faults = self._aside = 0
        self.add(faults)

    def __len__(self) -> int:
        return self._faults

    def add(self, faults: Iterable[Fault]) -> int:
        """Forbid more; how many of them are new."""
        listed = list(faults)
        if not listed:
            return 0
        states = np.array([fault.state for fault in listed], self.task.dtype)
        return self.add_pairs(states, np.array([fault.action for fault in listed]))

    def add_pairs(self, states: State, actions: NDArray[np.integer[Any]]) -> int:
        """Forbid action i in state i, given as (n, V) and (n,); how many are new."""
        if not np.isin(actions, np.arange(self.task.num_actions)).all():
            raise ShieldError(f"{self.task.name} has the actions 0 to {self.task.num_actions - 1}")
        before = self._faults
        applicable = self.task.applicable_many(states)
        for state, action, possible in zip(states, actions.tolist(), applicable, strict=True):
            key = state_key(self.task, state)
            mask = self._masks.get(key, self._open)
            if not mask[action]:
                continue
            mask = mask.copy()
            mask[action] = False
            if not (mask & possible).any():
                self._aside += 1
                continue
            self._masks[key] = mask
            self._faults += 1
        return self._faults - before

    def mask(self, state: State) -> Mask:
        return self._masks.get(state_key(self.task, state), self._open)

    def mask_many(self, states: State) -> Mask:
        rows = np.asarray(states, self.task.dtype) + 0
        masks = np.ones((len(rows), self.task.num_actions), np.bool_)
        for number, row in enumerate(rows):
            found = self._masks.get(row.tobytes())
            if found is not None:
                masks[number] = found
        return masks

    def report(self) -> dict[str, int]:
        """Faults forbidden, their states, and pairs left open as nothing else was applicable."""
        return {"faults": self._faults, "states": len(self._masks), "stepped_aside": self._aside}

    def pairs(self) -> tuple[State, NDArray[np.int64]]:
        """All forbidden pairs: states (n, V) and actions (n,)."""
        width, kind = self.task.num_variables, self.task.dtype
        states = np.array([np.frombuffer(k, kind) for k in self._masks], kind).reshape(-1, width)
        masks = np.array(list(self._masks.values()), np.bool_).reshape(-1, self.task.num_actions)
        rows, actions = np.nonzero(~masks)
        return states[rows], actions.astype(np.int64)

    def to_data(self) -> tuple[Data, dict[str, NDArray[Any]]]:
        states, actions = self.pairs()
        return {}, {"states": states, "actions": actions}

    @classmethod
    def from_data(cls, task: Task, options: Data, arrays: Mapping[str, NDArray[Any]]) -> Self:
        shield = cls(task)
        shield.add_pairs(arrays["states"], arrays["actions"])
        return shield


class RememberingShield(Shield):
    """Judges each state once and remembers its mask.

    Attributes:
        judged: non-terminal states judged so far.
        restricted: those of them where an applicable action is forbidden.
        stepped_aside: those where everything would have been forbidden.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._masks: dict[bytes, Mask] = {}
        self._all = np.ones(task.num_actions, np.bool_)
        self._all.flags.writeable = False
        self.judged = self.restricted = self.stepped_aside = 0

    @abstractmethod
    def _judge(self, states: State, applicable: Mask) -> Mask:
        """Good actions among the applicable ones of states that are not terminal."""

    def mask(self, state: State) -> Mask:
        found = self._masks.get(state_key(self.task, state))
        return self.mask_many(np.asarray(state).reshape(1, -1))[0] if found is None else found

    def mask_many(self, states: State) -> Mask:
        rows = np.asarray(states, self.task.dtype) + 0
        keys = [row.tobytes() for row in rows]
        new = {key: number for number, key in enumerate(keys) if key not in self._masks}
        if new:
            if len(self._masks) + len(new) > REMEMBERED:
                self._masks = {}
                new = {key: number for number, key in enumerate(keys)}
            self._learn(list(new), rows[list(new.values())])
        masks = [self._masks[key] for key in keys]
        return np.array(masks, np.bool_).reshape(-1, self.task.num_actions)

    def _learn(self, keys: list[bytes], states: State) -> None:
        applicable = self.task.applicable_many(states)
        running = (self.task.classify(states) == 0) & applicable.any(axis=1)
        self._masks.update((key, self._all) for key in keys)
        if not running.any():
            return
        possible = applicable[running]
        good = self._judge(states[running], possible) & possible
        empty = ~good.any(axis=1)
        good[empty] = possible[empty]
        good.flags.writeable = False
        self.judged += len(good)
        self.restricted += int((good != possible).any(axis=1).sum())
        self.stepped_aside += int(empty.sum())
        places = np.flatnonzero(running).tolist()
        self._masks.update((keys[place], row) for place, row in zip(places, good, strict=True))

    def report(self) -> dict[str, int]:
        """Different states judged, restricted among them, and where it stepped aside."""
        return {
            "judged": self.judged,
            "restricted": self.restricted,
            "stepped_aside": self.stepped_aside,
        }


class DeciderShield(RememberingShield):
    """Asks a decider about every outcome of every action, and permits only safe actions.

    From a safe state, a run that follows it never fails. Where no action is safe, actions
    whose safety is unknown (a budget ended) are permitted, and where there are none
    either, all; both are counted.

    A long training comes through ever more states: before they fill the budget, the decider
    forgets what it knows (`Decider.make_room`), and masks stay remembered.

    Args:
        decider: its name, see `make_decider`.
        budget: as an object or as plain data, ``{"states": 1_000_000}``.
    """

    kind: ClassVar[str] = "decider"

    def __init__(
        self,
        task: Task,
        *,
        decider: str = "otf",
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(task)
        self.budget = Budget(**budget) if isinstance(budget, Mapping) else budget or Budget()
        self.decider = make_decider(decider, task, budget=self.budget)
        self.unknown = 0

    def _judge(self, states: State, applicable: Mask) -> Mask:
        parts = [states[first : first + PART] for first in range(0, len(states), PART)]
        verdicts = np.concatenate([self._verdicts(part) for part in parts])
        safe: Mask = verdicts == Verdict.SAFE
        helpless = ~safe.any(axis=1)
        doubtful = verdicts == Verdict.UNKNOWN
        safe[helpless] = doubtful[helpless]
        self.unknown += int(doubtful.any(axis=1).sum())
        assert (applicable == (verdicts != NOT_APPLICABLE)).all()
        return safe

    def _verdicts(self, states: State) -> NDArray[np.uint8]:
        self.decider.make_room()
        return self.decider.action_verdicts(states)

    def report(self) -> dict[str, int]:
        """As before, and states where a budget left a question open."""
        return {**super().report(), "unknown": self.unknown}

    def _options(self) -> Data:
        limits = {name: getattr(self.budget, name) for name in ("states", "seconds", "megabytes")}
        return {"decider": self.decider.name, "budget": limits}

    def __getstate__(self) -> tuple[Task, Data]:
        return self.task, self._options()

    def __setstate__(self, state: tuple[Task, Data]) -> None:
        self.__init__(state[0], **state[1])  # type: ignore[misc]  # what it knew is found again

    def to_data(self) -> tuple[Data, dict[str, NDArray[Any]]]:
        return self._options(), {}

    @classmethod
    def from_data(cls, task: Task, options: Data, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls(task, **options)


class CombinedShield(Shield):
    """Permits what all its parts permit; the most trusted part first.

    Where a part would leave nothing of what those before it permit, it is not heard. The
    parts of a combination among them are parts like the others.
    """

    kind: ClassVar[str] = "combined"

    def __init__(self, *parts: Shield) -> None:
        if not parts:
            raise ConfigError("a combination needs at least one shield")
        super().__init__(parts[0].task)
        for part in parts[1:]:
            require_same_task(part, self.task)
        self.parts = tuple(one for part in parts for one in _single(part))

    def mask(self, state: State) -> Mask:
        one: Mask = self.mask_many(np.asarray(state).reshape(1, -1))[0]
        return one

    def mask_many(self, states: State) -> Mask:
        masks = self.task.applicable_many(states)
        deadlock = ~masks.any(axis=1)
        for part in self.parts:
            masks = _narrowed(masks, part.mask_many(states))
        masks[deadlock] = True
        return masks

    def report(self) -> dict[str, int]:
        """The parts' reports, by number and kind."""
        return {
            f"{number}.{part.kind}.{name}": count
            for number, part in enumerate(self.parts)
            for name, count in part.report().items()
        }

    def to_data(self) -> tuple[Data, dict[str, NDArray[Any]]]:
        raise ConfigError("a combination is saved part by part; use save_shield")

    @classmethod
    def from_data(cls, task: Task, options: Data, arrays: Mapping[str, NDArray[Any]]) -> Self:
        raise ConfigError("a combination is loaded part by part; use load_shield")
