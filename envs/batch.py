"""Many copies of a task stepped by one call; the vector faces are thin layers over this.

Every copy has its own random stream and its own stream of start states, derived from its
seed exactly as `JaniEnv` does, so that it lives through the same episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray

from safetest_gym.engine.batch import Autoreset, BatchSettings, BatchStepper
from safetest_gym.envs.observing import choice_space, make_view
from safetest_gym.envs.options import EnvArguments, ModelSource, open_task
from safetest_gym.envs.rewards import plan_reward
from safetest_gym.envs.shielding import Shield, require_shield, shielded_many
from safetest_gym.envs.starting import (
    CHUNK,
    Preference,
    StartStream,
    chosen_start,
    derived_seeds,
    preference_of,
)
from safetest_gym.errors import ActionError
from safetest_gym.task import action_numbers
from safetest_gym.whole_numbers import require_int, without_point

__all__ = ["Batch"]


class Batch:
    """Copies of one task with their streams, shield and masks.

    The arrays are the stepper's own: shapes (n, V), (n, A) and (n,). Copy what leaves.

    Attributes:
        preferred: (n,), did the copy's episode begin in a state of `set_starts`?
    """

    def __init__(
        self,
        model: ModelSource,
        num_envs: int,
        autoreset: Autoreset,
        arguments: EnvArguments,
    ) -> None:
        require_int("num_envs", without_point(num_envs), 1)
        self.task, self.options = open_task(model, arguments)
        self.num_envs = int(num_envs)
        self.autoreset = autoreset
        self.view = make_view(self.task, self.options.observation, self.options.observed)
        self.action_space = choice_space(self.task)
        self.shields: list[Shield | None] = [None] * self.num_envs
        self._shielded = False
        self.last_actions = np.full(self.num_envs, -1, dtype=np.int64)
        self._streams: list[StartStream | None] = [None] * self.num_envs
        self._preference: Preference | None = None
        self._waiting = np.zeros((self.num_envs, CHUNK), np.bool_)
        self.preferred = np.zeros(self.num_envs, np.bool_)
        self._build_stepper()

    def _build_stepper(self) -> None:
        self.stepper = BatchStepper(
            self.task,
            plan_reward(self.options.reward, self.task.property),
            self.num_envs,
            BatchSettings(
                autoreset=self.autoreset,
                invalid_action=self.options.invalid_action,
                step_limit=self.options.step_limit,
                pool=CHUNK,
            ),
            scaling=(self.view.offset, self.view.scale),
            dtype=self.view.space.dtype,
        )

    def reset(
        self,
        which: Sequence[int],
        seeds: Sequence[int | None],
        chosen: Sequence[Mapping[str, Any] | None],
    ) -> None:
        """Start new episodes in the copies ``which``; the others stay as they are."""
        stepper = self.stepper
        for i, seed, options in zip(which, seeds, chosen, strict=True):
            stream = self._streams[i]
            if seed is not None or stream is None:
                steps, starts = derived_seeds(seeding.np_random(seed)[0])
                stepper.seed(i, steps)
                stream = self._streams[i] = StartStream(self.task, starts)
                stream.prefer(self._preference)
                stepper.cursor[i] = CHUNK
            self.preferred[i] = False
            if options:
                stepper.reset_to(i, chosen_start(self.task, options))
                continue
            if stepper.cursor[i] == CHUNK:
                self._fill(i, stream)
            self.preferred[i] = self._waiting[i, stepper.cursor[i]]
            stepper.reset(i)
        self.last_actions[list(which)] = -1
        self._fill_empty()
        if self.view.inexact:
            self.view.require_exact(self.stepper.states)

    def _fill(self, i: int, stream: StartStream) -> None:
        """Put new start states at the end of an empty pool."""
        chunk = stream.chunk()
        first = CHUNK - len(chunk)
        self.stepper.pool[i, first:] = chunk
        self._waiting[i, first:] = stream.preferred
        self.stepper.cursor[i] = first

    def _fill_empty(self) -> None:
        """Every copy needs one start state at hand before the next step."""
        for i in np.flatnonzero(self.stepper.cursor == CHUNK).tolist():
            stream = self._streams[i]
            if stream is not None:
                self._fill(i, stream)

    def step(self, actions: NDArray[Any]) -> None:
        """One step of every copy; the results are in the stepper's arrays."""
        chosen = action_numbers(actions, self.num_envs)
        refused = self.stepper.step(chosen)
        if refused >= 0:
            self._explain(refused, int(chosen[refused]))
        self.last_actions[:] = chosen
        if self.autoreset == "SameStep" and (self._preference is not None or self.preferred.any()):
            begun = np.flatnonzero(self.stepper.outcomes)
            self.preferred[begun] = self._waiting[begun, self.stepper.cursor[begun] - 1]
        if self.stepper.used_up:
            self._fill_empty()
        if self.view.inexact:
            self.view.require_exact(self.stepper.states)

    def _explain(self, i: int, action: int) -> None:
        """Raise what the kernel could only number; only a model's error lets copies move before."""
        self._fill_empty()
        self.stepper.raise_error()
        if None in self._streams:
            raise ResetNeeded("call reset() before step()")
        if self.stepper.ended[i]:
            raise ResetNeeded(f"environment {i} has ended its episode; reset it before step()")
        task = self.task
        names = [f"{a} ({task.actions[a]})" for a in np.flatnonzero(self.stepper.masks[i])]
        known = 0 <= action < task.num_actions
        name = f"{action} ({task.actions[action]})" if known else str(action)
        raise ActionError(
            f"action {name} of environment {i} is not applicable in "
            f"{task.as_dict(self.stepper.states[i])}; applicable: {', '.join(names) or 'none'}"
        )

    def masks(self) -> NDArray[np.int8]:
        """What every learner sees: applicable and permitted by its shield; fresh (n, A)."""
        stepper = self.stepper
        mask = stepper.visible_masks()
        if self._shielded:
            self._put_shields(mask, stepper.masks, stepper.states, self.shields)
        return mask

    def final_masks(self, which: NDArray[np.int64]) -> NDArray[np.int8]:
        """`masks` of the states in which ``which`` have ended with the last step of SameStep."""
        stepper = self.stepper
        applicable = stepper.final_masks[which]
        mask: NDArray[np.int8] = applicable.copy()
        mask[~mask.any(axis=1)] = 1
        if self._shielded:
            shields = [self.shields[i] for i in which.tolist()]
            self._put_shields(mask, applicable, stepper.final_states[which], shields)
        return mask

    @staticmethod
    def _put_shields(
        mask: NDArray[np.int8],
        applicable: NDArray[np.int8],
        states: NDArray[Any],
        shields: Sequence[Shield | None],
    ) -> None:
        """Write the masks of states with a shield, in one call if all have the same."""
        first = shields[0] if shields else None
        if first is not None and all(shield is first for shield in shields):
            mask[:] = shielded_many(applicable, first, states)
            return
        for i, shield in enumerate(shields):
            if shield is not None:
                row = slice(i, i + 1)
                mask[row] = shielded_many(applicable[row], shield, states[row])

    def observations(self) -> NDArray[Any]:
        """What every learner sees, fresh (n, F)."""
        return self.view(self.stepper.observations)

    def states(self) -> NDArray[Any]:
        """The exact states, fresh (n, V)."""
        copy: NDArray[Any] = self.stepper.states.copy()
        return copy

    def set_shield(self, shield: Shield | None, which: Sequence[int]) -> None:
        """Put a shield on some copies; None removes it."""
        require_shield(shield, self.task)
        for i in which:
            self.shields[i] = shield
        self._shielded = any(shield is not None for shield in self.shields)

    def set_starts(self, states: NDArray[Any], share: float) -> None:
        """From now on, begin this share of the episodes in one of ``states`` (n, V)."""
        self._preference = preference_of(self.task, states, share)
        for i, stream in enumerate(self._streams):
            if stream is not None:
                stream.prefer(self._preference)
                self._fill(i, stream)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "stepper"}
        return kept | {"_snapshot": self.stepper.snapshot()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        snapshot = kept.pop("_snapshot")
        self.__dict__.update(kept)
        self._build_stepper()
        self.stepper.restore(snapshot)
