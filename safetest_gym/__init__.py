"""Train, test and repair the policies of JANI planning tasks.

Importing registers the environment ids with Gymnasium. Names are loaded when first used,
so that this costs hardly more than importing Gymnasium.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.task import Task, load_task

__all__ = ["Task", "__version__", "load_task"]

__version__ = "0.1.0"

_HOMES = {
    "Task": "safetest_gym.task",
    "load_task": "safetest_gym.task",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


import_module("safetest_gym.envs.registration").register_envs()
