"""JaniEnv: a JANI task as a Gymnasium environment.

A step is one call into machine code that fills this environment's buffers; what leaves
the environment are fresh copies of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, Unpack, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from safetest_gym.engine.stepper import Stepper
from safetest_gym.envs.observing import choice_space, make_view
from safetest_gym.envs.options import EnvArguments, ModelSource, open_task
from safetest_gym.envs.outcomes import (
    FAILING,
    INVALID,
    OUTCOME_NAMES,
    RUNNING,
    TRUNCATED,
    Outcome,
)
from safetest_gym.envs.rewards import plan_reward
from safetest_gym.envs.shielding import Shield, never_empty, require_shield, shielded
from safetest_gym.envs.starting import StartStream, chosen_start, derived_seeds
from safetest_gym.errors import ActionError, ConfigError
from safetest_gym.jani.reporting import describe

__all__ = ["JaniEnv"]

Observation = NDArray[np.floating[Any]]
Vector = NDArray[Any]
Info = dict[str, Any]
Step = tuple[Observation, float, bool, bool, Info]
TRAIL = 64
_RUNNING, _ENDS_AT_ONCE, _OVER = range(3)
_REBUILT = ("_take", "_address", "_mask", "_observation", "_seen", "_state", "_stepper")


class JaniEnv(gymnasium.Env[Observation, np.int64]):
    """Any JANI task; see `safetest_gym.envs.options` for the arguments.

    An episode ends in a failing state, in a goal state and where nothing is applicable
    (in that order of tests), or is truncated at the step limit. A start state where one
    of these holds already ends the episode with its first step, whatever the action.

    ``info`` has the exact ``state``, the ``action_mask`` (int8, for ``Discrete.sample``),
    ``cost`` (1.0 when a failing state is entered), ``cumulative_cost``, ``is_success``,
    and ``outcome``: how the episode ended, or None.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - declared like this by Gymnasium
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 8,
    }

    def __init__(
        self,
        model: ModelSource,
        *,
        render_mode: str | None = None,
        **arguments: Unpack[EnvArguments],
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ConfigError(f"render_mode must be one of {known} or None, got {render_mode!r}")
        self.task, self.options = open_task(model, arguments)
        self.render_mode = render_mode
        self._view = make_view(self.task, self.options.observation, self.options.observed)
        self.observation_space = cast("spaces.Space[Observation]", self._view.space)
        self.action_space = choice_space(self.task)
        self._shield: Shield | None = None
        self._starts: StartStream | None = None
        self._steps = 0
        self._start_status = RUNNING
        self._ended: Outcome | None = None
        self._phase = _OVER
        self._last_action: int | None = None
        self._trail: deque[Vector] = deque(maxlen=TRAIL)
        self._build_stepper()

    def _build_stepper(self) -> None:
        """Make the machine-code side; everything here is rebuilt after unpickling."""
        task, options = self.task, self.options
        view = self._view
        plan = plan_reward(options.reward, task.property)
        self._stepper = Stepper(
            task,
            plan,
            scaling=(view.offset, view.scale),
            dtype=view.space.dtype,
        )
        self._take, self._address = self._stepper.take, self._stepper.address
        self._observation = self._stepper.observation
        self._mask = self._stepper.mask
        self._state = self._stepper.state
        self._limit = float("inf") if options.step_limit is None else options.step_limit
        self._inexact = bool(view.inexact)
        self._watched = self._inexact or self._shield is not None
        # Most rewards depend on the status alone: no need to fetch them.
        self._constants = None if plan.expressions else self._stepper.constants
        self._seen: Callable[[], Observation] = (
            self._observation.copy if view.columns is None else partial(view, self._observation)
        )

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed variables, in the order of observations."""
        return self._view.observed

    @property
    def state(self) -> Vector:
        """The exact state, a fresh vector in the order of ``task.variables``."""
        copy: Vector = self._state.copy()
        return copy

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode.

        ``options`` may give the start: ``state``, a vector or a mapping from names to
        values, or ``index``, a position in the enumeration of the start states.
        """
        if seed is not None:
            super().reset(seed=seed)
        if seed is not None or self._starts is None:
            steps, starts = derived_seeds(self.np_random)
            self._stepper.seed(steps)
            self._starts = StartStream(self.task, starts)
        self._phase, self._ended = _OVER, None  # also if what follows is refused
        if options:
            status = self._stepper.reset(chosen_start(self.task, options))
        else:
            status = self._stepper.enter(self._starts.address())
        self._steps = 0
        self._last_action = None
        self._trail.clear()
        self._start_status = status
        self._ended = OUTCOME_NAMES[status]
        self._phase = _RUNNING if status == RUNNING else _ENDS_AT_ONCE
        info = self._info()
        if self._inexact:
            self._view.require_exact(self._state[None])
        if self._shield is not None or status != RUNNING:
            info["action_mask"] = shielded(self._mask, self._shield, self._state)
        return self._seen(), info

    def step(self, action: Any) -> Step:
        """Take an action; see the class for what ``info`` tells."""
        if self._phase:
            return self._step_ended()
        try:
            number = index(action)
            status = self._take(self._address, number)
        except Exception:
            _require_number(action)
            raise
        if status < 0:
            status = self._stepper.take_again(number, status)
            if status < 0:
                return self._step_refused(number)
        self._last_action = number
        self._steps += 1
        info = {
            "state": self._state.copy(),
            "action_mask": self._mask.copy(),
            "cost": 0.0,
            "cumulative_cost": 0.0,
            "is_success": False,
            "outcome": None,
        }
        reward = self._stepper.reward if self._constants is None else self._constants[status]
        if status or self._watched or self._steps >= self._limit:
            return self._finish(info, status, reward)
        return self._seen(), reward, False, False, info

    def _finish(self, info: Info, status: int, reward: float) -> Step:
        """The rest of a step that may be more than the usual one."""
        if self._inexact:
            self._view.require_exact(self._state[None])
        if self._shield is not None:
            info["action_mask"] = shielded(self._mask, self._shield, self._state)
        truncated = not status and self._steps >= self._limit
        if status or truncated:
            self._end(info, OUTCOME_NAMES[TRUNCATED if truncated else status])
        return self._seen(), reward, status > 0, truncated, info

    def _info(self) -> Info:
        return {
            "state": self._state.copy(),
            "action_mask": self._mask.copy(),
            "cost": 0.0,
            "cumulative_cost": 0.0,
            "is_success": False,
            "outcome": None,
        }

    def _end(self, info: Info, outcome: Outcome) -> None:
        """Write down how the episode has ended."""
        self._phase = _OVER
        self._ended = outcome
        info["outcome"] = outcome
        info["is_success"] = outcome == "goal"
        info["cost"] = info["cumulative_cost"] = float(outcome == "failing")
        info["action_mask"] = never_empty(info["action_mask"])

    def _step_ended(self) -> Step:
        """The first step from a start state that ends the episode, or a step too many."""
        if self._phase == _OVER or self._ended is None:
            over = f"the episode has ended ({self._ended})" if self._ended else "it has not begun"
            raise ResetNeeded(f"call reset() before step(): {over}")
        info = self._info()
        self._steps += 1
        self._end(info, self._ended)
        return self._seen(), self._stepper.constants[self._start_status], True, False, info

    def _step_refused(self, action: int) -> Step:
        """An inapplicable action, or an error of the model that the engine explains."""
        phase, self._phase = self._phase, _OVER
        self._stepper.raise_error()
        self._phase = phase
        if self.options.invalid_action == "raise" or not 0 <= action < self.task.num_actions:
            raise ActionError(self._refusal(action))
        self._last_action = action
        self._steps += 1
        info = self._info()
        info["invalid_action"] = True
        if self.options.invalid_action == "noop":
            return self._finish(info, RUNNING, self._stepper.constants[RUNNING])
        self._end(info, OUTCOME_NAMES[INVALID])
        return self._seen(), self._stepper.constants[FAILING], True, False, info

    def _refusal(self, action: int) -> str:
        task = self.task
        names = [f"{a} ({task.actions[a]})" for a in np.flatnonzero(self._mask)]
        known = 0 <= action < task.num_actions
        name = f"{action} ({task.actions[action]})" if known else str(action)
        return (
            f"action {name} is not applicable in {task.as_dict(self._state)}; "
            f"applicable: {', '.join(names) or 'none'}"
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """What sb3-contrib's MaskablePPO asks for."""
        if self._shield is None and self._phase == _RUNNING:
            mask: NDArray[np.bool_] = self._mask.astype(np.bool_)
            return mask
        return shielded(self._mask, self._shield, self._state).astype(np.bool_)

    def set_shield(self, shield: Shield | None) -> None:
        """Let ``shield`` take actions out of the masks from now on; None removes it."""
        require_shield(shield, self.task)
        self._shield = shield
        self._watched = self._inexact or shield is not None

    def get_shield(self) -> Shield | None:
        """The shield in force."""
        return self._shield

    def render(self) -> Any:
        """A picture (rgb_array), a text (ansi), or None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode; give one to gym.make")
            return None
        if self._phase == _OVER and self._ended is None:
            raise ResetNeeded("call reset() before render()")
        from safetest_gym.envs.rendering import picture
        from safetest_gym.envs.rendering.ansi import draw_ansi
        from safetest_gym.envs.rendering.scene import Scene

        task, number = self.task, self._last_action
        scene = Scene(
            title=task.name,
            action=None if number is None else task.actions[number],
            step=self._steps,
            outcome=self._ended,
            parameters=self.options.parameters,
            variables=task.variables,
            trail=[task.as_dict(state) for state in self._trail],
        )
        values = task.as_dict(self._state)
        if self.render_mode == "ansi":
            return draw_ansi(values, scene, self.options.picture)
        frame = np.array(picture(self.options.picture)(values, scene))
        self._trail.append(self._state.copy())
        return frame

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in _REBUILT}
        return kept | {"_snapshot": self._stepper.snapshot()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        snapshot = kept.pop("_snapshot")
        self.__dict__.update(kept)
        self._build_stepper()
        self._stepper.restore(snapshot)


def _require_number(action: Any) -> None:
    """Refuse what machine code cannot be given as an action."""
    try:
        fits = -(2**63) <= index(action) < 2**63
    except TypeError:
        fits = False
    if not fits:
        raise ActionError(f"an action is its number, got {describe(action)}") from None
