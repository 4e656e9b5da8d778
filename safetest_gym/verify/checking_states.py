"""Check a listed set of states on the slow interpreter; shares no code with the verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.interpreter import Choice, Interpreter, State
from safetest_gym.errors import CertificateError, SafetestError
from safetest_gym.jani.tree import FALSE
from safetest_gym.starts.base import StartSet
from safetest_gym.verify.inductive import InductiveStates
from safetest_gym.verify.slow_policy import SlowPolicy

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["StatesChecker"]

_BATCH = 2048


class StatesChecker:
    """Goes through the states of a proof.

    Args:
        policy: bound to the task.
        report: is told how many states are checked.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        proof: InductiveStates,
        report: Callable[[int], None] | None = None,
    ) -> None:
        if len(proof.columns) != task.num_variables or len(set(map(len, proof.columns))) > 1:
            raise CertificateError("the proof's states are no states of the task")
        self._task, self._proof, self._report = task, proof, report
        self._policy = SlowPolicy(policy)
        self._interpreter = Interpreter(task.model)
        self._kinds = [column.dtype for column in proof.columns]
        keys = _keys(proof.columns)
        order = np.argsort(keys, kind="stable")
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[order[1:]] != keys[order[:-1]]
        self._distinct = order[first]
        self._keys = keys[self._distinct]

    def check_starts(self, starts: StartSet | NDArray[Any], sample: int | None, seed: int) -> None:
        """Every start state (or a sample) must be in the set."""
        if isinstance(starts, np.ndarray):
            missing = ~self._known(starts.astype(self._task.dtype))
            if missing.any():
                raise CertificateError(f"the start {starts[missing][0].tolist()} is missing")
            return
        if sample is not None:
            self.check_starts(starts.sample(sample, np.random.default_rng(seed)), None, seed)
            return
        wanted = starts.count()
        if wanted is None:
            raise CertificateError("no list has infinitely many start states")
        # If as many of the distinct states are starts as there are starts, all are listed.
        listed = 0
        for first in range(0, len(self._distinct), _BATCH):
            rows = self._proof.rows(self._distinct[first : first + _BATCH]).tolist()
            listed += sum(starts.contains(row) for row in rows)
        if listed != wanted:
            raise CertificateError(f"{wanted - listed} of {wanted} start states are missing")

    def check_states(self, which: NDArray[np.int64]) -> None:
        """These states must not fail, and the policy must stay in the set."""
        for first in range(0, len(which), _BATCH):
            part = which[first : first + _BATCH]
            self._check_batch(part)
            if self._report is not None:
                self._report(first + len(part))

    def _check_batch(self, which: NDArray[np.int64]) -> None:
        running: list[tuple[int, dict[int, Choice]]] = []
        vectors = self._proof.rows(which).astype(self._task.dtype)
        for at, row in enumerate(vectors.tolist()):
            try:
                actions = self._actions(self._state(row))
            except CertificateError:
                raise
            except SafetestError as error:
                raise CertificateError(f"the state {row} has no value: {error}") from None
            if actions:
                running.append((at, actions))
        masks = np.zeros((len(running), self._task.num_actions), np.bool_)
        for mask, (_, actions) in zip(masks, running, strict=True):
            mask[list(actions)] = True
        if not running:
            return
        asked = vectors[[at for at, _ in running]]
        chosen = self._policy.actions(asked, masks).tolist()
        reached, sources = [], []
        for action, (at, actions) in zip(chosen, running, strict=True):
            if action not in actions:
                raise CertificateError(f"the policy has no action in {vectors[at].tolist()}")
            for _, outcome in actions[action].outcomes:
                reached.append(outcome)
                sources.append(at)
        known = self._known(np.array(reached, self._task.dtype))
        if not known.all():
            number = int(known.argmin())
            raise CertificateError(
                f"the policy leads from {self._shown(vectors[sources[number]])} to "
                f"{self._interpreter.describe(reached[number])}, which is not in the set"
            )

    def _actions(self, state: State) -> dict[int, Choice]:
        """The applicable actions by number; none where runs end."""
        task, interpreter = self._task, self._interpreter
        if interpreter.holds(task.property.failure or FALSE, state):
            raise CertificateError(f"{interpreter.describe(state)} fails")
        if interpreter.holds(task.property.goal or FALSE, state):
            return {}
        choices = interpreter.actions(state, task.action_mode)
        if task.model.type == "dtmc":
            return dict(enumerate(choices))
        if task.action_mode == "edge":
            return {choice.edges[0]: choice for choice in choices}
        return {task.actions.index(choice.label): choice for choice in choices}

    def _state(self, row: list[Any]) -> State:
        kinds = {"bool": bool, "int": int, "real": float}
        return tuple(
            kinds[variable.kind](value)
            for variable, value in zip(self._task.variables, row, strict=True)
        )

    def _shown(self, vector: NDArray[Any]) -> str:
        return self._interpreter.describe(self._state(vector.tolist()))

    def _known(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        if not len(self._keys):
            return np.zeros(len(rows), np.bool_)
        columns = [column.astype(kind) for column, kind in zip(rows.T, self._kinds, strict=True)]
        fits = np.ones(len(rows), np.bool_)
        for column, given in zip(columns, rows.T, strict=True):
            fits &= column == given
        keys = _keys(columns)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.asarray(fits & (self._keys[at] == keys))


def _keys(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows as one item each, which can be sorted and compared."""
    width = sum(column.dtype.itemsize for column in columns)
    out = np.empty((len(columns[0]), width), np.uint8)
    at = 0
    for column in columns:
        size = column.dtype.itemsize
        plain = np.ascontiguousarray(column + column.dtype.type(0))  # no negative zero
        out[:, at : at + size] = plain.view(np.uint8).reshape(-1, size)
        at += size
    return out.view(np.dtype((np.void, width)))[:, 0]
