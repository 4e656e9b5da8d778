"""The engine: a model's machine code with its buffers, for vectors of the task's dtype.

Pickles and copies hold the model only; the code comes back from the disk cache.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.composition import Composition, compose
from safetest_gym.engine.fingerprint import fingerprint
from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.engine.layout import Layout, lay_out
from safetest_gym.engine.machine import Machine, load_machine
from safetest_gym.engine.module import EVALUATE, FUNCTIONS, evaluator_text, module_text
from safetest_gym.errors import EngineError, StateError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.formatting import format_expression
from safetest_gym.jani.tree import Expression, Model, Value

__all__ = ["Engine", "Evaluator", "Expansion"]

Words = NDArray[np.int64]
Vectors = NDArray[Any]

_LOADING = threading.Lock()
"""A second copy of the code would take the place of one whose addresses are in use."""


@cache
def _bulk() -> Any:
    """The kernels, loaded when they are needed: numba takes its time."""
    return import_module("safetest_gym.engine.kernels.bulk")


class Expansion:
    """Successors of several states, as rows.

    Attributes:
        states: packed successors.
        probability: per row, within its composed edge.
        number: per row, the composed edge.
        first: the rows of state s are ``first[s] : first[s + 1]``.
        ends: ``ends[s, k]`` rows of state s (from its first) belong to labels up to k.
    """

    def __init__(
        self, states: Words, probability: Vectors, number: Words, first: Words, ends: Words
    ) -> None:
        self.states = states
        self.probability = probability
        self.number = number
        self.first = first
        self.ends = ends


class Engine:
    """Machine code of a model and two conditions.

    Args:
        failing: the failure condition.
        goal: the goal condition.
    """

    def __init__(self, model: Model, failing: Expression, goal: Expression) -> None:
        self.model = model
        self.failing = failing
        self.goal = goal
        self.composition: Composition = compose(model)
        self.layout: Layout = lay_out(model.variables)
        floating = any(variable.kind == "real" for variable in model.variables)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if floating else np.int64)
        self._machine: Machine | None = None

    def __getstate__(self) -> tuple[Model, Expression, Expression]:
        return self.model, self.failing, self.goal

    def __setstate__(self, state: tuple[Model, Expression, Expression]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # rebuild everything derived

    @property
    def machine(self) -> Machine:
        """The code, loaded at first use."""
        if self._machine is not None:
            return self._machine
        with _LOADING, deep_recursion():
            if self._machine is None:
                key = ["module", self.model.digest, fingerprint([self.failing, self.goal])]
                self._machine = load_machine(key, FUNCTIONS, self._text)
        return self._machine

    def _text(self) -> tuple[str, int]:
        return module_text(self.model, self.composition, self.layout, [self.failing, self.goal])

    @property
    def num_words(self) -> int:
        """Words of a packed state."""
        return self.layout.num_words

    @property
    def num_labels(self) -> int:
        """Labels, the silent one included."""
        return len(self.composition.labels)

    def address(self, function: str) -> int:
        """Raw address of a function of `safetest_gym.engine.module`."""
        return self.machine.addresses[function]

    def pack(self, vectors: Vectors) -> Words:
        """Packed states of vectors (n, V); raises `StateError` for a value out of bounds."""
        rows = self.vectors(vectors)
        states = np.empty((len(rows), self.num_words), np.int64)
        bad = _bulk().pack_kernel(self.address("pack"), rows, states)
        if bad < 0:
            row, column = divmod(-1 - bad, rows.shape[1])
            variable = self.model.variables[column]
            raise StateError(
                f"{variable.name} = {rows[row, column]} in state {row} is not within "
                f"{variable.lower} .. {variable.upper} ({variable.kind})"
            )
        return states

    def vectors(self, states: Vectors) -> Vectors:
        """Check shape and convert to a contiguous (n, V) array of the task's dtype."""
        try:
            given = np.asarray(states)
        except ValueError as error:  # rows of different lengths
            raise StateError(f"states must be an array: {error}") from None
        if given.ndim != 2 or given.shape[1] != len(self.model.variables):
            raise StateError(
                f"states of shape {given.shape} given, expected (n, {len(self.model.variables)})"
            )
        if given.dtype == self.dtype:
            return np.ascontiguousarray(given)
        if given.dtype.kind not in "biuf":
            raise StateError(f"states must be numbers of at most 64 bits, got {given.dtype}")
        with np.errstate(invalid="ignore"):
            converted = np.ascontiguousarray(given, dtype=self.dtype)
            back = converted.astype(given.dtype)
            if not (np.array_equal(converted, given) and np.array_equal(back, given)):
                raise StateError(f"states have a value that is no {self.dtype}, as this task needs")
        return converted

    def unpack(self, states: Words) -> Vectors:
        """Vectors of packed states."""
        out = np.empty((len(states), len(self.model.variables)), self.dtype)
        _bulk().fill_kernel(self.address("unpack"), np.ascontiguousarray(states), out)
        return out

    def classify(self, states: Words) -> NDArray[np.uint8]:
        """Per state, bit 0 failing and bit 1 goal."""
        out = np.empty(len(states), np.uint8)
        bad = _bulk().classify_kernel(self.address("classify"), states, out)
        if bad < 0:
            self.explain(states[-1 - bad])
        return out

    def applicable(self, states: Words) -> NDArray[np.bool_]:
        """Per state and label, is an edge enabled?"""
        masks = np.empty((len(states), self.num_labels), np.bool_)
        bad = _bulk().applicable_kernel(self.address("applicable"), states, masks.view(np.uint8))
        if bad < 0:
            self.explain(states[-1 - bad])
        return masks

    def expand(self, states: Words) -> Expansion:
        """All successors of all states."""
        total = len(states)
        rows = np.zeros(total + 1, np.int64)
        ends = np.zeros((max(1, total), max(1, self.num_labels)), np.int64)
        capacity = max(self.machine.rows, 4 * total)
        succ, prob, number = self.row_buffers(capacity)
        done = 0
        while True:
            done = _bulk().expand_kernel(
                self.address("expand"), states, done, succ, prob, number, ends, rows
            )
            if done < 0:
                self.explain(states[-1 - done])
            if done == total:
                break
            capacity = 2 * capacity + self.machine.rows
            count = rows[done]
            old = succ, prob, number
            succ, prob, number = self.row_buffers(capacity)
            for new, before in zip((succ, prob, number), old, strict=True):
                new[:count] = before[:count]
        count = rows[total]
        return Expansion(succ[:count], prob[:count], number[:count], rows, ends[:total])

    def row_buffers(self, capacity: int) -> tuple[Words, NDArray[np.float64], Words]:
        """Arrays for the rows of an expansion: packed states, probabilities, numbers."""
        return (
            np.empty((capacity, self.num_words), np.int64),
            np.empty(capacity, np.float64),
            np.empty(capacity, np.int64),
        )

    def values(self, packed: Words) -> tuple[Value, ...]:
        """One packed state as Python values, for the interpreter and for messages."""
        words = packed.ravel().view(np.uint64).tolist()
        return tuple(field.value(words[field.word]) for field in self.layout.fields)

    def explain(self, packed: Words) -> NoReturn:
        """Raise the error that the interpreter finds in a state where the code found one."""
        interpreter = Interpreter(self.model)
        state = self.values(packed)
        with deep_recursion():
            interpreter.value(self.failing, state, "the failure condition")
            interpreter.value(self.goal, state, "the goal condition")
            interpreter.choices(state)
        raise EngineError(
            f"machine code and interpreter disagree in state {state}: please report this model"
        )


class Evaluator:
    """Machine code of expressions over a state, as doubles.

    Attributes:
        expressions: what is computed, in order.
    """

    def __init__(self, engine: Engine, expressions: Sequence[Expression]) -> None:
        self.engine = engine
        self.expressions = tuple(expressions)
        self._machine: Machine | None = None

    def __getstate__(self) -> tuple[Engine, tuple[Expression, ...]]:
        return self.engine, self.expressions

    def __setstate__(self, state: tuple[Engine, tuple[Expression, ...]]) -> None:
        self.engine, self.expressions = state
        self._machine = None

    @property
    def address(self) -> int:
        """``evaluate(state, doubles)``; negative where an expression has no value."""
        if self._machine is not None:
            return self._machine.addresses[EVALUATE]
        with _LOADING, deep_recursion():
            if self._machine is None:
                key = ["evaluator", self.engine.model.digest, fingerprint(self.expressions)]
                self._machine = load_machine(
                    key,
                    (EVALUATE,),
                    lambda: (evaluator_text(self.engine.layout, self.expressions), 0),
                )
        return self._machine.addresses[EVALUATE]

    def __call__(self, states: Words) -> NDArray[np.float64]:
        """Values of all expressions at packed states, (n, k)."""
        out = np.empty((len(states), len(self.expressions)), np.float64)
        bad = _bulk().evaluate_kernel(self.address, np.ascontiguousarray(states), out)
        if bad < 0:
            interpreter = Interpreter(self.engine.model)
            state = self.engine.values(states[-1 - bad])
            for expression in self.expressions:
                interpreter.value(expression, state, f"'{format_expression(expression)}'")
            raise EngineError(f"machine code and interpreter disagree in state {state}")
        return out
