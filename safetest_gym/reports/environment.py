"""What a report was written with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from safetest_gym import __version__

__all__ = ["environment"]

_PACKAGES = (
    "numpy",
    "numba",
    "llvmlite",
    "gymnasium",
    "stable-baselines3",
    "sb3-contrib",
    "torch",
    "xgboost",
    "gurobipy",
    "highspy",
)


def environment() -> list[tuple[str, str]]:
    """Names and values: versions of what results depend on, and the machine."""
    rows = [("safetest-gym", __version__), ("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return [*rows, ("system", machine), ("processors", str(os.cpu_count()))]
