"""Through which values a network sees each variable of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from safetest_gym.envs.observing import make_view
from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Variable

__all__ = ["observed_grids"]

_MOST_VALUES = 64


def observed_grids(env: SB3VecEnv, given: Mapping[str, Sequence[float]]) -> list[list[float]]:
    """Grids of a `GridEncoder` in numbers as observed, one per observed variable.

    Args:
        given: values of the variables themselves. Of the others, integers with up to 64
            values get all of these, and the rest is passed on as it is.
    """
    view = make_view(env.task, env.options.observation, env.options.observed)
    variables = {variable.name: i for i, variable in enumerate(env.task.variables)}
    for name in given:
        if name not in view.observed:
            close = get_close_matches(name, view.observed, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ConfigError(f"grids names {name!r}, which is no observed variable{hint}")
    grids = []
    for name in view.observed:
        i = variables[name]
        values = given[name] if name in given else _values(env.task.variables[i])
        points = _numbers(name, values)
        grids.append(((points - view.offset[i]) * view.scale[i]).tolist())
    return grids


def _numbers(name: str, values: Sequence[float]) -> NDArray[np.float64]:
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.array(np.nan)
    if points.ndim != 1 or not np.isfinite(points).all():
        raise ConfigError(f"grids must list numbers for {name!r}, got {values!r}")
    return points


def _values(variable: Variable) -> Sequence[float]:
    """All values of a small integer, else the bounds."""
    if variable.lower is None or variable.upper is None:
        raise ConfigError(f"variable {variable.name!r} has no bounds; name it in grids")
    lower, upper = float(variable.lower), float(variable.upper)
    if variable.kind != "real" and upper - lower < _MOST_VALUES:
        return np.arange(lower, upper + 1).tolist()
    return [lower, upper]
