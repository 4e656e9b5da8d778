"""Many environments behind one call: `BatchStepper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import batch as k
from safetest_gym.engine.kernels.stepping import ERROR, NO_ROWS, enter_kernel
from safetest_gym.engine.stepper import Blocks, Plan

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Autoreset", "BatchSettings", "BatchStepper", "InvalidAction"]

Autoreset = Literal["NextStep", "SameStep", "Disabled"]
InvalidAction = Literal["raise", "terminate", "noop"]

_AUTORESET = {"NextStep": k.NEXT_STEP, "SameStep": k.SAME_STEP, "Disabled": k.DISABLED}
_INVALID = {"raise": k.RAISE, "terminate": k.TERMINATE, "noop": k.NOOP}


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSettings:
    """How episodes of a batch begin and end.

    Attributes:
        autoreset: when an ended episode is followed by the next one, as Gymnasium names it.
        invalid_action: what an inapplicable action does.
        step_limit: steps until truncation; None for no limit.
        pool: start states kept at hand per environment.
    """

    autoreset: Autoreset
    invalid_action: InvalidAction
    step_limit: int | None
    pool: int


class BatchStepper:
    """Environments that share a task; all arrays have one row per environment.

    Attributes:
        states, observations, masks: live buffers (n, V), (n, V), (n, A).
        rewards, outcomes: of the last step. Outcomes: 0 running, 1 goal, 2 failing,
            3 deadlock, 4 truncated, 5 ended by an inapplicable action.
        steps: of the present episode.
        ended: is the episode over and not yet reset?
        was_reset: was the last step the reset of the mode NextStep?
        final_states, final_observations, final_masks: of rows that ended in the last step
            of the mode SameStep.
        pool, cursor: packed start states (n, P, W); a reset takes ``pool[i, cursor[i]]`` and moves
            the cursor. Callers fill up so that every cursor is below P before a step.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        num_envs: int,
        settings: BatchSettings,
        *,
        scaling: tuple[NDArray[np.float64], NDArray[np.float64]],
        dtype: Any,
    ) -> None:
        blocks = Blocks(task, plan, num_envs, scaling=scaling, dtype=dtype)
        self._task = task
        self._blocks = blocks
        self.states, self.observations = blocks.states, blocks.observations
        self.masks = blocks.masks
        self.rewards = np.zeros(num_envs)
        self.outcomes = np.zeros(num_envs, np.int8)
        self.steps = np.zeros(num_envs, np.int64)
        self.ended = np.ones(num_envs, np.bool_)
        self.was_reset = np.zeros(num_envs, np.bool_)
        self.final_states = np.zeros_like(self.states)
        self.final_observations = np.zeros_like(self.observations)
        self.final_masks = np.zeros_like(self.masks)
        self.pool = np.zeros((num_envs, settings.pool, task.engine.num_words), np.int64)
        self.cursor = np.full(num_envs, settings.pool, np.int64)
        self._entered = np.zeros(num_envs, np.int8)
        self._progress = np.zeros(num_envs, np.int8)
        limit = min(2**62 if settings.step_limit is None else int(settings.step_limit), 2**62)
        autoreset, invalid = _AUTORESET[settings.autoreset], _INVALID[settings.invalid_action]
        self._settings = np.array([autoreset, invalid, limit, 0, 0], np.int64)
        self._failed: int | None = None
        self._per_env = (
            self.outcomes,
            self.rewards,
            self.steps,
            self.ended,
            self._entered,
            self.was_reset,
            self.cursor,
            self._progress,
        )
        self._finals = (self.final_observations, self.final_states, self.final_masks)
        self._current = (self.observations, self.states, self.masks, blocks.rewards)

    def seed(self, index: int, seed: int) -> None:
        """Begin the random stream of one environment."""
        self._blocks.randoms[index] = seed

    def reset(self, index: int) -> None:
        """Begin an episode at the next start state of the pool."""
        words = self.pool[index, self.cursor[index]]
        self.cursor[index] += 1
        self._enter(index, words)

    def reset_to(self, index: int, state: NDArray[Any]) -> None:
        """Begin an episode at ``state``."""
        self._enter(index, self._task.engine.pack(np.asarray(state).reshape(1, -1))[0])

    def _enter(self, index: int, words: NDArray[np.int64]) -> None:
        blocks = self._blocks
        address = int(blocks.blocks.ctypes.data) + index * blocks.blocks.strides[0]
        source = int(words.ctypes.data)
        status = enter_kernel(address, source)
        while status == NO_ROWS:
            blocks.grow_rows()
            status = enter_kernel(address, source)
        if status == ERROR:
            blocks.explain(index)
        self._entered[index] = status
        self.steps[index] = 0
        self.ended[index] = self.was_reset[index] = False
        self.outcomes[index] = 0
        self.rewards[index] = 0.0

    def step(self, actions: NDArray[np.int64]) -> int:
        """Step all; -1, or the environment that refused, in which case none has moved."""
        settings = self._settings
        result = k.begin_kernel(self.masks, actions, self._per_env, self.pool, settings)
        if result == k.REFUSED:
            return int(settings[3])
        while True:
            result = k.batch_kernel(
                self._blocks.blocks,
                actions,
                self._per_env,
                self._finals,
                self._current,
                self.pool,
                settings,
            )
            if result == k.DONE:
                return -1
            if result != k.GROW:
                self._failed = int(settings[3])
                return self._failed
            self._blocks.grow_rows()

    @property
    def used_up(self) -> bool:
        """Did the last step take the last start state of a pool?"""
        return bool(self._settings[4])

    def visible_masks(self) -> NDArray[np.int8]:
        """Fresh masks for learners: everything where nothing is applicable, at an episode's end."""
        masks = self.masks.copy()
        k.open_kernel(masks, self.ended, self._entered)
        return masks

    def raise_error(self) -> None:
        """Raise what made the last step impossible, if it was an error of the model."""
        if self._failed is not None:
            index, self._failed = self._failed, None
            self._blocks.explain(index)

    _KEPT = (
        "rewards",
        "outcomes",
        "steps",
        "ended",
        "was_reset",
        "final_states",
        "final_observations",
        "final_masks",
        "pool",
        "cursor",
        "_entered",
    )
    _KEPT_BLOCKS = ("words", "states", "observations", "masks", "rewards", "randoms", "after")

    def snapshot(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Everything needed to go on elsewhere, as plain arrays."""
        return {
            "own": {name: getattr(self, name).copy() for name in self._KEPT},
            "blocks": {name: getattr(self._blocks, name).copy() for name in self._KEPT_BLOCKS},
        }

    def restore(self, snapshot: dict[str, dict[str, NDArray[Any]]]) -> None:
        """Go on from a snapshot."""
        for owner, part in ((self, "own"), (self._blocks, "blocks")):
            for name, array in snapshot[part].items():
                getattr(owner, name)[:] = array
