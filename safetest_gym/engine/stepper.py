"""Stepping environments natively: one, or the buffers of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import context as c
from safetest_gym.engine.kernels.stepping import (
    ERROR,
    NO_ROWS,
    NO_ROWS_AFTER,
    enter_kernel,
    settle_kernel,
    step_kernel,
)
from safetest_gym.jani.tree import Expression

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Blocks", "Plan", "Stepper"]


class Plan(Protocol):
    """What a step is worth; see `safetest_gym.envs.rewards.RewardPlan`."""

    @property
    def constants(self) -> NDArray[np.float64]: ...
    @property
    def expressions(self) -> tuple[Expression | str, ...]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...


class Blocks:
    """Buffers and context blocks of ``count`` environments that share one task.

    Attributes:
        words: packed states (count, W).
        states: state vectors (count, V), filled by looking around.
        observations: (count, V) in ``dtype``.
        masks: applicable actions (count, A), int8.
        rewards: of the last step (count,).
        randoms: random streams (count,).
        blocks: the context blocks (count, SIZE), see `kernels.context`.

    Args:
        scaling: offset and scale of observations per variable.
        dtype: float32 or float64, of observations.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        count: int,
        *,
        scaling: tuple[NDArray[np.float64], NDArray[np.float64]],
        dtype: Any,
    ) -> None:
        engine = task.engine
        self.task = task
        self.words = np.zeros((count, engine.num_words), np.int64)
        self.states = np.zeros((count, task.num_variables), task.dtype)
        self.observations = np.zeros((count, task.num_variables), dtype)
        self.masks = np.zeros((count, task.num_actions), np.int8)
        self.rewards = np.zeros(count)
        self.randoms = np.zeros(count, np.int64)
        self.constants = np.ascontiguousarray(plan.constants, np.float64)
        self._weights = np.ascontiguousarray(plan.weights, np.float64)
        expressions = len(plan.expressions)
        self.before = np.zeros((count, max(1, expressions)))
        self.after = np.zeros((count, max(1, expressions)))
        self._offset, self._scale = (np.ascontiguousarray(part) for part in scaling)
        self._evaluator = task.evaluator(list(plan.expressions)) if expressions else None
        self.blocks = np.zeros((count, c.SIZE), np.int64)
        self._fill_blocks(count, expressions)
        self._capacity = 0
        self.grow_rows()

    def _fill_blocks(self, count: int, expressions: int) -> None:
        """Write addresses and sizes into the blocks; rows follow in `grow_rows`."""
        task, engine = self.task, self.task.engine
        own = (
            (c.STATE, self.words),
            (c.RANDOM, self.randoms),
            (c.MASK, self.masks),
            (c.VALUES, self.states),
            (c.OBSERVATION, self.observations),
            (c.REWARD, self.rewards),
            (c.VALUE_BEFORE, self.before),
            (c.VALUE_AFTER, self.after),
        )
        for place, array in own:
            self.blocks[:, place] = array.ctypes.data + np.arange(count) * array.strides[0]
        scaled = bool((self._offset != 0).any() or (self._scale != 1).any())
        shared = {
            c.WORDS: engine.num_words,
            c.VARIABLES: task.num_variables,
            c.ACTIONS: task.num_actions,
            c.GRANULARITY: task.granularity,
            c.FLOATING: int(task.dtype.kind == "f"),
            c.DOUBLE: int(self.observations.dtype == np.float64),
            c.OFFSET: self._offset.ctypes.data if scaled else 0,
            c.SCALE: self._scale.ctypes.data if scaled else 0,
            c.EXPRESSIONS: expressions,
            c.WEIGHTS: self._weights.ctypes.data,
            c.CONSTANTS: self.constants.ctypes.data,
            c.EXPAND: engine.address("expand"),
            c.OUTCOMES: engine.address("outcomes"),
            c.APPLICABLE: engine.address("applicable"),
            c.CLASSIFY: engine.address("classify"),
            c.UNPACK: engine.address("unpack"),
            c.EVALUATE: self._evaluator.address if self._evaluator is not None else 0,
        }
        for place, value in shared.items():
            self.blocks[:, place] = value

    def grow_rows(self) -> None:
        """Make the shared row buffers larger (after a kernel returned `NO_ROWS`)."""
        engine = self.task.engine
        self._capacity = max(16, engine.machine.rows, 2 * self._capacity)
        succ, prob, number = engine.row_buffers(self._capacity)
        ends = np.zeros(max(1, engine.num_labels), np.int64)
        self._rows = (succ, prob, number, ends)
        for place, array in zip((c.SUCC, c.PROB, c.NUMBER, c.ENDS), self._rows, strict=True):
            self.blocks[:, place] = array.ctypes.data
        self.blocks[:, c.CAPACITY] = self._capacity

    def explain(self, index: int) -> None:
        """Raise the model's (or the reward's) error in the state of environment ``index``."""
        if self._evaluator is not None:
            self._evaluator(self.words[index : index + 1])
        self.task.engine.explain(self.words[index].copy())


class Stepper:
    """One environment.

    Attributes:
        observation, mask, state: its live buffers.
        take: ``take(address, action)``: a status as of `reset` or a negative number,
            which `take_again` sorts out. As an attribute, for those who count nanoseconds.
        address: of this environment's block.
        constants: the reward plan's, by status.

    Args:
        plan: what steps are worth.
        scaling: offset and scale of observations per variable.
        dtype: float32 or float64, of observations.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        *,
        scaling: tuple[NDArray[np.float64], NDArray[np.float64]],
        dtype: Any,
    ) -> None:
        self._task = task
        self._blocks = Blocks(task, plan, 1, scaling=scaling, dtype=dtype)
        self.address = int(self._blocks.blocks.ctypes.data)
        self._error = False
        self.take: Callable[[int, int], int] = step_kernel
        self.observation = self._blocks.observations[0]
        self.mask = self._blocks.masks[0]
        self.state = self._blocks.states[0]
        self.constants: list[float] = self._blocks.constants.tolist()
        self._reward = self._blocks.rewards

    @property
    def reward(self) -> float:
        """What the last step was worth."""
        return float(self._reward[0])

    def seed(self, seed: int) -> None:
        """Begin a random stream."""
        self._blocks.randoms[0] = seed

    def reset(self, state: NDArray[Any]) -> int:
        """Go to ``state`` (a vector); 0 running, 1 goal, 2 failing, 3 deadlock."""
        words = self._task.engine.pack(np.asarray(state).reshape(1, -1))
        return self.enter(int(words.ctypes.data))

    def enter(self, words: int) -> int:
        """The same for the packed state at an address."""
        status: int = enter_kernel(self.address, words)
        while status == NO_ROWS:
            self._blocks.grow_rows()
            status = enter_kernel(self.address, words)
        if status == ERROR:
            self._blocks.explain(0)
        return status

    def take_again(self, action: int, status: int) -> int:
        """Finish what ``take`` could not: a status, or -1 if ``action`` is not applicable."""
        while status in (NO_ROWS, NO_ROWS_AFTER):
            self._blocks.grow_rows()
            if status == NO_ROWS:
                status = step_kernel(self.address, action)
            else:
                status = settle_kernel(self.address)
        if status == ERROR:
            self._error = True
            return -1
        return status

    def raise_error(self) -> None:
        """Raise what made the last step impossible, if it was an error of the model."""
        if self._error:
            self._error = False
            self._blocks.explain(0)

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, as plain arrays."""
        blocks = self._blocks
        names = ("words", "states", "observations", "masks", "rewards", "randoms", "after")
        return {name: getattr(blocks, name).copy() for name in names}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, array in snapshot.items():
            getattr(self._blocks, name)[:] = array
