"""The vector entry point behind the ids of bundled tasks; see `safetest_gym.envs.bundled`."""

from __future__ import annotations

from typing import Any

from safetest_gym.engine.batch import Autoreset
from safetest_gym.envs.bundled import split_arguments
from safetest_gym.envs.vector_env import JaniVectorEnv

__all__ = ["BundledVectorEnv"]


class BundledVectorEnv(JaniVectorEnv):
    """A batch of a bundled task by name."""

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        autoreset_mode: Autoreset = "NextStep",
        **arguments: Any,
    ) -> None:
        generator, env = split_arguments(task, arguments)
        super().__init__(generator, num_envs, autoreset_mode=autoreset_mode, **env)
