"""What every face of a task (single, vector, Stable-Baselines3) can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, get_args

from safetest_gym.engine.batch import InvalidAction
from safetest_gym.envs.observing import Observation
from safetest_gym.envs.rendering import PICTURES
from safetest_gym.envs.rewards import RewardData, reward_from_data
from safetest_gym.errors import ConfigError
from safetest_gym.task import Task, load_task
from safetest_gym.whole_numbers import require_int, without_point

__all__ = ["EnvArguments", "EnvOptions", "Generator", "ModelSource", "open_task"]


class Generator(Protocol):
    """A bundled task: a frozen dataclass of parameters that writes its JANI documents."""

    @property
    def name(self) -> str: ...
    def model(self) -> dict[str, Any]: ...
    def properties(self) -> list[dict[str, Any]]: ...


ModelSource = Task | Generator | Mapping[str, Any] | str | Path


class EnvArguments(TypedDict, total=False):
    """Keyword arguments of the environments; all plain data.

    The first group goes to `safetest_gym.task.load_task`, the second is explained in
    `EnvOptions`.
    """

    properties: Any
    property: str | None
    constants: Mapping[str, Any] | None
    failure: Any
    goal: Any
    start: Any
    action_mode: Literal["label", "edge"]

    observation: Observation
    observed: Sequence[str] | None
    reward: RewardData | None
    invalid_action: InvalidAction
    step_limit: int | None
    picture: str


_LOADING = ("properties", "property", "constants", "failure", "goal", "start", "action_mode")


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvOptions:
    """How a task is presented to a learner.

    Attributes:
        observation: the variables as ``float32`` or ``float64``, or ``normalized`` to
            [-1, 1] by their bounds (float32).
        observed: names of the variables that are observed; None for all.
        reward: see `safetest_gym.envs.rewards.reward_from_data`.
        invalid_action: what an inapplicable action does: ``raise`` an error,
            ``terminate`` the episode with the reward of failing but no cost, or nothing
            but let a step pass (``noop``).
        step_limit: steps until truncation; None for no limit.
        picture: which picture `render` draws, see `safetest_gym.envs.rendering.PICTURES`.
        parameters: what pictures may know besides the state; constants and parameters
            of a generator.
    """

    observation: Observation = "float32"
    observed: Sequence[str] | None = None
    reward: RewardData | None = None
    invalid_action: InvalidAction = "raise"
    step_limit: int | None = 1000
    picture: str = "table"
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_choice("observation", self.observation, get_args(Observation))
        _require_choice("invalid_action", self.invalid_action, get_args(InvalidAction))
        if self.step_limit is not None:
            require_int("step_limit", without_point(self.step_limit), 1)
        if isinstance(self.observed, str) or not isinstance(self.observed, Iterable | None):
            raise ConfigError(f"observed must list names of variables, got {self.observed!r}")
        if self.picture not in tuple(PICTURES):
            raise ConfigError(f"unknown picture {self.picture!r}; known: {', '.join(PICTURES)}")
        reward_from_data(self.reward)


def _require_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def open_task(model: ModelSource, arguments: EnvArguments) -> tuple[Task, EnvOptions]:
    """Load the task that ``model`` and the arguments describe, and check the options."""
    _refuse_unknown(arguments)
    loading: dict[str, Any] = {name: arguments[name] for name in _LOADING if name in arguments}  # type: ignore[literal-required]  # checked by membership
    options: dict[str, Any] = {
        name: value for name, value in arguments.items() if name not in _LOADING
    }
    parameters: dict[str, object] = {}
    if isinstance(model, Task):
        if loading:
            raise ConfigError(f"a loaded task takes no {', '.join(loading)}")
        task = model
    elif isinstance(model, str | Path | Mapping):
        task = load_task(model, **loading)
    elif not hasattr(model, "model"):
        raise ConfigError(
            "a model is a file, JSON data, a Task or a generator of bundled tasks, got "
            f"{type(model).__name__}"
        )
    else:
        loading.setdefault("properties", model.properties())
        task = load_task(model.model(), **loading)
        if getattr(model, "variant", None) == "ignoring":
            options.setdefault("observed", getattr(model, "observed", None))
        parameters |= asdict(model)  # type: ignore[call-overload]  # generators are dataclasses
        parameters |= getattr(model, "scenery", {})
    parameters = {**task.model.constants, **parameters}
    return task, EnvOptions(parameters=parameters, **options)


def _refuse_unknown(arguments: Mapping[str, object]) -> None:
    known = EnvArguments.__annotations__
    for name in arguments:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise ConfigError(f"unknown argument {name!r} of the environment ({hint})")
