"""Task: a checked model and one safety property, as their users see them."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.fingerprint import fingerprint
from safetest_gym.engine.interpreter import STEP
from safetest_gym.engine.native import Engine, Evaluator
from safetest_gym.engine.unsafety import distance_expression
from safetest_gym.errors import (
    ActionError,
    ConfigError,
    EvaluationError,
    StateError,
)
from safetest_gym.jani import (
    parse_expression,
    read_condition,
    read_goal,
    read_model,
    read_start,
)
from safetest_gym.jani.choosing import choose_property
from safetest_gym.jani.document import Source
from safetest_gym.jani.operations import comparable
from safetest_gym.jani.reporting import describe
from safetest_gym.jani.tree import (
    FALSE,
    Expression,
    Model,
    PlanningProperty,
    Value,
    Variable,
)
from safetest_gym.starts import StartSet, default_starts, make_starts

__all__ = ["LISTABLE", "ActionMode", "Source", "Task", "action_numbers", "load_task"]

ActionMode = Literal["label", "edge"]
State = NDArray[Any]

MAX_ACTIONS = 1_000_000
LISTABLE = 1_000_000
"""Sets of start states up to this size are numbered, in their order of enumeration."""


class Task:
    """What there is to decide, to reach and to avoid.

    States are vectors in the order of ``variables``: int64, or float64 if a variable is
    real; bools are 0 and 1. In a state failing is tested first, then goal, then deadlock.

    Args:
        model: the checked model.
        property_: goal, failure condition, start states and shaping terms.
        action_mode: see `load_task`.
    """

    def __init__(
        self, model: Model, property_: PlanningProperty, action_mode: ActionMode = "label"
    ) -> None:
        if action_mode not in ("label", "edge"):
            raise ConfigError(f"action_mode must be 'label' or 'edge', got {action_mode!r}")
        self.model = model
        self.property = property_
        self.action_mode: ActionMode = action_mode
        self.engine = Engine(model, property_.failure or FALSE, property_.goal or FALSE)
        self.actions: tuple[str, ...] = self._action_names()

    def __getstate__(self) -> tuple[Model, PlanningProperty, ActionMode]:
        return self.model, self.property, self.action_mode

    def __setstate__(self, state: tuple[Model, PlanningProperty, ActionMode]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # everything else is derived

    def _action_names(self) -> tuple[str, ...]:
        composition = self.engine.composition
        if self.model.type == "dtmc":
            return (STEP,)
        if self.action_mode == "label":
            return composition.labels
        if composition.size > MAX_ACTIONS:
            raise ConfigError(
                f"the model has {composition.size} combinations of edges, too many to be "
                "actions; use action_mode='label'"
            )
        return tuple(
            f"{composition.labels[rule.label]}[{','.join(map(str, rule.edges(number)))}]"
            for rule in composition.rules
            for number in range(rule.base, rule.base + rule.size)
        )

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """State variables in the order of state vectors."""
        return self.model.variables

    @property
    def num_variables(self) -> int:
        """Length of a state vector."""
        return len(self.model.variables)

    @property
    def num_actions(self) -> int:
        """Actions are numbered from 0."""
        return len(self.actions)

    @property
    def granularity(self) -> int:
        """What kernels take for an action: 0 a composed edge, 1 a label, 2 everything."""
        return 2 if self.model.type == "dtmc" else int(self.action_mode == "label")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of state vectors."""
        return self.engine.dtype

    @property
    def has_property(self) -> bool:
        """Is there a failure or a goal condition?"""
        return self.property.failure is not None or self.property.goal is not None

    @property
    def digest(self) -> str:
        """Hash of model, constants, conditions and action mode; the same in every process."""
        conditions = fingerprint([self.engine.failing, self.engine.goal])
        parts = [self.model.digest, self.action_mode, conditions]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def default_initial(self) -> StartSet:
        """The model's own initial states."""
        return default_starts(self.model, satisfies=self._satisfies(self.model.initial))

    @cached_property
    def initial(self) -> StartSet:
        """The property's start states; the model's own where it names none."""
        start = self.property.start
        if start is None:
            return self.default_initial
        condition = getattr(start, "condition", None)
        satisfies = None if condition is None else self._satisfies(condition)
        return make_starts(self.model.variables, start, satisfies=satisfies)

    @cached_property
    def listed_starts(self) -> NDArray[np.int64]:
        """All start states by number, packed (n, W); see `LISTABLE`."""
        return self.engine.pack(self.initial.enumerate(LISTABLE))

    def _satisfies(self, condition: Expression) -> _Condition:
        return _Condition(self.engine, condition)

    def state(self, values: Mapping[str, Value | str]) -> State:
        """A state vector from names and values; a location may be given by its name."""
        names = {variable.name: i for i, variable in enumerate(self.variables)}
        unknown = [name for name in values if name not in names]
        missing = [name for name in names if name not in values]
        if unknown or missing:
            raise StateError(
                f"not a state of {self.name}:"
                + (f" unknown {', '.join(unknown)}" if unknown else "")
                + (f" missing {', '.join(missing)}" if missing else "")
            )
        row = []
        for variable in self.variables:
            value = values[variable.name]
            if isinstance(value, str):
                if value not in variable.locations:
                    raise StateError(f"{variable.name} has no location {value!r}")
                value = variable.locations.index(value)
            row.append(value)
        packed = self.engine.pack(_as_numbers(row, self.dtype).reshape(1, -1))
        result: State = self.engine.unpack(packed)[0]
        return result

    def as_dict(self, state: State) -> dict[str, Value]:
        """Names and Python values of a state vector."""
        packed = self._pack_one(state)
        names = (variable.name for variable in self.variables)
        return dict(zip(names, self.engine.values(packed[0]), strict=True))

    def _pack_one(self, state: State) -> NDArray[np.int64]:
        return self.engine.pack(np.asarray(state).reshape(1, -1))

    def is_failing(self, state: State) -> bool:
        """Does the failure condition hold?"""
        return bool(self.engine.classify(self._pack_one(state))[0] & 1)

    def is_goal(self, state: State) -> bool:
        """Does the goal condition hold, in a failing state or not?"""
        return bool(self.engine.classify(self._pack_one(state))[0] & 2)

    def classify(self, states: State) -> NDArray[np.uint8]:
        """Per state (n, V): bit 0 failing, bit 1 goal."""
        return self.engine.classify(self.engine.pack(states))

    def applicable(self, state: State) -> NDArray[np.bool_]:
        """Which actions can be taken, (num_actions,)."""
        mask: NDArray[np.bool_] = self.applicable_many(np.asarray(state).reshape(1, -1))[0]
        return mask

    def applicable_many(self, states: State) -> NDArray[np.bool_]:
        """Which actions can be taken, (n, num_actions)."""
        packed = self.engine.pack(states)
        if self.model.type == "dtmc":
            return np.asarray(self.engine.applicable(packed).any(axis=1, keepdims=True))
        if self.action_mode == "label":
            return self.engine.applicable(packed)
        expansion = self.engine.expand(packed)
        masks = np.zeros((len(packed), self.num_actions), np.bool_)
        masks[np.repeat(np.arange(len(packed)), np.diff(expansion.first)), expansion.number] = True
        return masks

    def successors(self, state: State) -> list[tuple[int, list[tuple[float, State]]]]:
        """Per applicable action its outcomes: (probability, state), for reading.

        Where several edges carry the action's label, each is equally likely.
        """
        expansion = self.engine.expand(self._pack_one(state))
        states = self.engine.unpack(expansion.states)
        found = []
        for action, rows in self._choices(expansion.number, expansion.ends[0]):
            edges = len(np.unique(expansion.number[rows]))
            outcomes = [(float(expansion.probability[r]) / edges, states[r]) for r in rows]
            found.append((action, outcomes))
        return found

    def _choices(
        self, number: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> list[tuple[int, list[int]]]:
        """Rows of one state by action, in the order of actions."""
        if self.model.type == "dtmc":
            return [(0, list(range(len(number))))] if len(number) else []
        grouped: dict[int, list[int]] = {}
        for row in range(len(number)):
            label = int(np.searchsorted(ends, row, side="right"))
            grouped.setdefault(
                label if self.action_mode == "label" else int(number[row]), []
            ).append(row)
        return sorted(grouped.items())

    def step_many(
        self, states: State, actions: NDArray[np.int64], rng: np.random.Generator
    ) -> State:
        """One sampled successor per state and action."""
        from safetest_gym.engine.kernels.stepping import pick_kernel

        packed = self.engine.pack(states)
        chosen = action_numbers(actions, len(packed))
        expansion = self.engine.expand(packed)
        rows = np.empty(len(packed), np.int64)
        bad = pick_kernel(
            self.granularity,
            expansion.first,
            expansion.ends,
            expansion.probability,
            expansion.number,
            chosen,
            rng.random(len(packed)),
            rows,
        )
        if bad < 0:
            row = -1 - bad
            raise ActionError(
                f"action {int(chosen[row])} is not applicable in {self.as_dict(states[row])}; "
                f"applicable: {np.flatnonzero(self.applicable(states[row])).tolist()}"
            )
        return self.engine.unpack(expansion.states[rows])

    @cached_property
    def distance_evaluator(self) -> Evaluator | None:
        """Machine code of `distance`, for kernels; None where nothing can fail."""
        expression = distance_expression(self.engine.failing)
        return None if expression is None else Evaluator(self.engine, [expression])

    def distance(self, state: State) -> float:
        """How far the failure condition is from holding ([J] section 5); 0 where it holds."""
        return float(self.distance_many(np.asarray(state).reshape(1, -1))[0])

    def distance_many(self, states: State) -> NDArray[np.float64]:
        """The same for states (n, V)."""
        packed = self.engine.pack(states)
        if self.distance_evaluator is None:
            return np.full(len(packed), np.inf)
        return self.distance_evaluator(packed)[:, 0]

    def evaluator(self, expressions: list[Expression | str]) -> Evaluator:
        """Machine code for numeric or bool expressions, given checked or as text."""
        checked = [
            parse_expression(e, self.model) if isinstance(e, str) else e for e in expressions
        ]
        return Evaluator(self.engine, checked)

    def describe(self) -> str:
        """A summary for people."""
        from safetest_gym.describe import describe_task

        return describe_task(self)

    def __repr__(self) -> str:
        return (
            f"Task({self.name!r}, {self.num_variables} variables, {self.num_actions} actions, "
            f"property {self.property.name!r})"
        )


def action_numbers(actions: object, count: int) -> NDArray[np.int64]:
    """``count`` actions as the kernels take them.

    Raises:
        ActionError: they are no integers, or not that many.
    """
    given = np.asarray(actions)
    if given.shape != (count,) or given.dtype.kind not in "biu":
        raise ActionError(
            f"expected {count} actions (integers), got shape {given.shape} of {given.dtype}"
        )
    return np.ascontiguousarray(given, np.int64)


class _Condition:
    """A condition as a bulk test of vectors; False where it has no value."""

    def __init__(self, engine: Engine, condition: Expression) -> None:
        self._evaluator = Evaluator(engine, [condition])

    def __call__(self, states: State) -> NDArray[np.bool_]:
        packed = self._evaluator.engine.pack(states)
        try:
            return np.asarray(self._evaluator(packed)[:, 0] != 0)
        except EvaluationError:
            if len(packed) == 1:
                return np.zeros(1, np.bool_)
            half = len(packed) // 2
            return np.concatenate([self(states[:half]), self(states[half:])])


def _as_numbers(row: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values as ``dtype``, refusing what it cannot hold."""
    for value in row:
        if not isinstance(value, numbers.Real | np.bool_):
            raise StateError(f"{value!r} is no number")
    convert = _as_double if dtype.kind == "f" else _as_int64
    return np.array([convert(value) for value in row], dtype)


def _as_double(value: Any) -> float:
    double = comparable(value)
    if isinstance(value, numbers.Integral) and double != value:
        raise StateError(f"{describe(int(value))} is no double, as states with reals need")
    return double


def _as_int64(value: Any) -> int:
    if not isinstance(value, numbers.Integral | np.bool_) and not float(value).is_integer():
        raise StateError(f"{value} is no integer")
    if not -(2**63) <= int(value) < 2**63:
        raise StateError(f"{describe(int(value))} does not fit 64 bits")
    return int(value)


def load_task(
    model: Source,
    properties: Source | None = None,
    *,
    property: str | int | None = None,  # the word users know
    constants: Mapping[str, Value] | None = None,
    failure: Source | None = None,
    goal: Source | None = None,
    start: Source | None = None,
    action_mode: ActionMode = "label",
) -> Task:
    """Read a model and one property of it.

    Args:
        model: a JANI file, or its parsed JSON.
        properties: a file of properties; without it the model's own are looked at.
        property: name or number; by default the first ``PA`` property. Of a standard one
            the target of ``F`` or ``U`` is the failure condition.
        constants: values of the model's open constants.
        failure: failure condition instead of the property's: a file, JSON or text such as
            ``"aux_vel <= -1 and truck == 3"``.
        goal: goal condition (or objective) instead of the property's.
        start: start states instead of the property's.
        action_mode: ``label``: all enabled edges of a label are one action's outcomes;
            ``edge``: every enabled (composed) edge is an action.
    """
    if constants is not None and not isinstance(constants, Mapping):
        raise ConfigError(f"constants map names to values, got {constants!r}")
    tree = read_model(model, constants=constants)
    replaced = failure is not None or goal is not None
    chosen = choose_property(tree, properties, property, replaced=replaced)
    aims = chosen
    if goal is not None:
        wanted = read_goal(goal, tree)
        aims = wanted if isinstance(wanted, PlanningProperty) else replace(chosen, goal=wanted)
    result = replace(
        aims,
        name=chosen.name,
        failure=chosen.failure if failure is None else read_condition(failure, tree),
        start=chosen.start if start is None else read_start(start, tree),
    )
    return Task(tree, result, action_mode)
