"""Check certificates on the slow interpreter.

This shares no code with the deciders: it is what a sceptic reads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from safetest_gym.deciders.certificate import Certificate
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.engine.interpreter import Choice, Interpreter
from safetest_gym.errors import CertificateError, SafetestError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.tree import FALSE, Value

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["check_certificate"]

Place = tuple[tuple[Value, ...], int]
"""A state and the deviations left in it."""


def check_certificate(
    task: Task, certificate: Certificate, *, policy: Policy | None = None
) -> None:
    """Return if the certificate proves its verdict about its first state.

    Args:
        policy: the policy under test, if the certificate has a radius.

    Raises:
        CertificateError: it proves nothing; the message says where it breaks.
    """
    if certificate.digest != task.digest:
        raise CertificateError(
            f"the certificate is about the task {certificate.digest}, not {task.digest}"
        )
    with deep_recursion():
        _Checker(task, certificate, policy).check()


class _Checker:
    def __init__(self, task: Task, certificate: Certificate, policy: Policy | None) -> None:
        self.task = task
        self.certificate = certificate
        self.policy = None if policy is None else policy.bind(task)
        self.bounded = certificate.radius >= 0
        if self.bounded and self.policy is None:
            raise CertificateError("a certificate with a radius is checked with its policy")
        self.interpreter = Interpreter(task.model)
        self.places = self._read_places()
        self.rank = certificate.rank.tolist()
        self.choices = self._read_choices()

    def check(self) -> None:
        verdict = self.certificate.verdict
        if verdict not in (Verdict.SAFE, Verdict.UNSAFE):
            raise CertificateError(f"{verdict.name} is nothing to prove")
        if self.bounded and self.places[0][1] != self.certificate.radius:
            raise CertificateError("the first state does not have all deviations left")
        known = {place: row for row, place in enumerate(self.places)}
        if len(known) != len(self.places):
            raise CertificateError("a state is listed twice")
        for row, place in enumerate(self.places):
            try:
                if verdict is Verdict.SAFE:
                    self._check_safe(row, place, known)
                else:
                    self._check_unsafe(row, place)
            except CertificateError:
                raise
            except SafetestError as error:
                raise self._broken(row, f"it has no value: {error}") from None

    def _check_safe(self, row: int, place: Place, known: dict[Place, int]) -> None:
        state, _ = place
        if self._fails(state):
            raise self._broken(row, "it fails")
        actions = {} if self._is_goal(state) else self._actions(place)
        chosen = self.choices.get(row, {})
        if not actions:
            if chosen:
                raise self._broken(row, "nothing can be chosen where a run ends")
            return
        if len(chosen) != 1:
            raise self._broken(row, f"{len(chosen)} actions are chosen, not one")
        (action,) = chosen
        if action not in actions:
            raise self._broken(row, f"action {action} is not applicable")
        outcomes = self._outcomes(place, action, actions[action])
        if not outcomes:
            raise self._broken(row, f"no deviation is left for action {action}")
        for outcome in outcomes:
            if outcome not in known:
                raise self._broken(row, f"outcome {outcome[0]} of action {action} is not listed")

    def _check_unsafe(self, row: int, place: Place) -> None:
        state, left = place
        if self._fails(state):
            return
        if self._is_goal(state):
            raise self._broken(row, "it is a goal")
        actions = self._actions(place)
        if not actions:
            raise self._broken(row, "it is a dead end")
        own = self._own(state, actions) if self.bounded else -1
        chosen = self.choices.get(row, {})
        for action, choice in actions.items():
            if self.bounded and action != own and left == 0:
                continue
            if action not in chosen:
                raise self._broken(row, f"action {action} is not refuted")
            target = chosen[action]
            if not 0 <= target < len(self.places):
                raise self._broken(row, f"there is no row {target}")
            if self.places[target] not in self._outcomes(place, action, choice):
                raise self._broken(row, f"row {target} is no outcome of action {action}")
            if not 0 <= self.rank[target] < self.rank[row]:
                raise self._broken(row, f"row {target} has no smaller rank")

    def _fails(self, state: tuple[Value, ...]) -> bool:
        return self.interpreter.holds(self.task.property.failure or FALSE, state)

    def _is_goal(self, state: tuple[Value, ...]) -> bool:
        return self.interpreter.holds(self.task.property.goal or FALSE, state)

    def _actions(self, place: Place) -> dict[int, Choice]:
        """The applicable actions by number."""
        edge_mode = self.task.action_mode == "edge"
        choices = self.interpreter.actions(place[0], self.task.action_mode)
        if self.task.model.type == "dtmc":
            return dict(enumerate(choices))
        if edge_mode:
            return {choice.edges[0]: choice for choice in choices}
        return {self.task.actions.index(choice.label): choice for choice in choices}

    def _own(self, state: tuple[Value, ...], actions: dict[int, Choice]) -> int:
        assert self.policy is not None
        mask = np.zeros((1, self.task.num_actions), np.bool_)
        mask[0, list(actions)] = True
        vector = np.array([state], self.task.dtype)
        return int(self.policy.actions(vector, mask)[0])

    def _outcomes(self, place: Place, action: int, choice: Choice) -> set[Place]:
        """Empty if the action would need a deviation more than there is."""
        state, left = place
        if self.bounded:
            left -= action != self._own(state, self._actions(place))
            if left < 0:
                return set()
        return {(outcome, left) for _, outcome in choice.outcomes}

    def _read_places(self) -> list[Place]:
        certificate = self.certificate
        count = len(certificate.states)
        shape = (count, self.task.num_variables)
        if count == 0 or certificate.states.shape != shape:
            raise CertificateError(f"states of shape {certificate.states.shape} prove nothing")
        if certificate.left.shape != (count,) or certificate.rank.shape != (count,):
            raise CertificateError("left and rank need one entry per state")
        if not self.bounded and certificate.left.any():
            raise CertificateError("without a radius no deviations are left or used")
        rows = certificate.states.tolist()
        return [
            (self._values(row, number), left)
            for number, (row, left) in enumerate(zip(rows, certificate.left.tolist(), strict=True))
        ]

    def _values(self, row: list[Any], number: int) -> tuple[Value, ...]:
        """A vector as Python values within their bounds."""
        values: list[Value] = []
        for variable, value in zip(self.task.variables, row, strict=True):
            kind = {"bool": bool, "int": int, "real": float}[variable.kind]
            lower = 0 if variable.kind == "bool" else variable.lower
            upper = 1 if variable.kind == "bool" else variable.upper
            if (
                not math.isfinite(value)
                or kind(value) != value
                or (lower is not None and value < lower)
                or (upper is not None and value > upper)
            ):
                raise CertificateError(f"row {number}: {variable.name} cannot be {value}")
            values.append(kind(value))
        return tuple(values)

    def _read_choices(self) -> dict[int, dict[int, int]]:
        """Per row of a state, its actions and the row that each is refuted with."""
        choices = self.certificate.choices
        if choices.ndim != 2 or choices.shape[1] != 3 or choices.dtype.kind != "i":
            raise CertificateError("choices must be rows of a state, an action and an outcome")
        found: dict[int, dict[int, int]] = {}
        for row, action, target in choices.tolist():
            if not 0 <= row < len(self.places):
                raise CertificateError(f"a choice is for row {row}, which does not exist")
            if action in found.setdefault(row, {}):
                raise self._broken(row, f"action {action} comes twice")
            found[row][action] = target
        return found

    def _broken(self, row: int, why: str) -> CertificateError:
        state, left = self.places[row]
        where = f" with {left} deviations left" if self.bounded else ""
        shown = self.interpreter.describe(state)
        return CertificateError(
            f"the {self.certificate.verdict.name} certificate breaks in row {row} "
            f"({shown}){where}: {why}"
        )
