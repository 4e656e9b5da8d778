"""Gymnasium ids: strings only, so registering imports nothing else of ours."""

from __future__ import annotations

import gymnasium

from safetest_gym.envs.tasks import NAMES

__all__ = ["JANI_ID", "NAMESPACE", "register_envs", "task_id"]

NAMESPACE = "safetest"
JANI_ID = f"{NAMESPACE}/Jani-v0"


def task_id(name: str) -> str:
    """The id of the bundled task ``name``."""
    return f"{NAMESPACE}/{name}-v0"


def register_envs() -> None:
    """Register every id once; calling it again changes nothing.

    No wrappers: the environments check the order of calls, the actions and the step limit
    themselves, at machine speed.
    """
    entries: dict[str, tuple[str, str, dict[str, str]]]
    entries = {JANI_ID: ("jani_env:JaniEnv", "vector_env:JaniVectorEnv", {})}
    for name in NAMES:
        entries[task_id(name)] = (
            "bundled:BundledEnv",
            "bundled_vector:BundledVectorEnv",
            {"task": name},
        )
    for env_id, (single, vector, arguments) in entries.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"safetest_gym.envs.{single}",
                vector_entry_point=f"safetest_gym.envs.{vector}",
                order_enforce=False,
                disable_env_checker=True,
                kwargs=dict(arguments),
            )
