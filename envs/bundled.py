"""The entry point behind the ids of bundled tasks.

Their keyword arguments are the generator's parameters and the environment's arguments
side by side, as Gymnasium's ``make`` passes them.
"""

from __future__ import annotations

from typing import Any, cast

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.options import EnvArguments, Generator
from safetest_gym.envs.rendering import PICTURES
from safetest_gym.envs.tasks import PRESETS, TASKS, make_generator

__all__ = ["BundledEnv", "split_arguments"]

_PICTURES = {"OneWayLine": "line", "TwoWayLine": "line"}
_LONG = ("BouncingBall", "CartPole", "FollowCar", "InvertedPendulum")
"""Tasks whose goal is to last a thousand steps."""


def split_arguments(name: str, arguments: dict[str, Any]) -> tuple[Generator, EnvArguments]:
    """Tell the generator's parameters from the environment's arguments."""
    known = EnvArguments.__annotations__
    env = {key: value for key, value in arguments.items() if key in known}
    generator = make_generator(name, {k: v for k, v in arguments.items() if k not in known})
    env.setdefault("picture", _picture(name))
    env.setdefault("step_limit", 2000 if name in _LONG else 1000)
    return generator, cast("EnvArguments", env)


def _picture(name: str) -> str:
    task = PRESETS[name][0] if name in PRESETS else name
    own = _PICTURES.get(task, TASKS[task])
    return own if own in PICTURES else "table"


class BundledEnv(JaniEnv):
    """A bundled task by name; every other argument is the generator's or `JaniEnv`'s."""

    def __init__(self, task: str, *, render_mode: str | None = None, **arguments: Any) -> None:
        generator, env = split_arguments(task, arguments)
        super().__init__(generator, render_mode=render_mode, **env)
