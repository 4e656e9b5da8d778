"""Arguments of a learning algorithm, checked before it is made.

Stable-Baselines3 keeps most of them unseen; a wrong one would end the training in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from safetest_gym.errors import ConfigError

__all__ = ["check_learner_options"]

_NOT_OPTIONS = ("policy", "env", "args", "kwargs", "return", "_init_setup_model")
_AT_LEAST_1 = ("n_steps", "batch_size", "n_epochs", "buffer_size")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "an object",
    type(None): "null",
}


def check_learner_options(algorithm: type, options: Mapping[str, Any]) -> None:
    """Refuse names that the algorithm does not know, and values of another type than it wants.

    Raises:
        ConfigError: says which name, and why.
    """
    hints = _hints(algorithm)
    for name, value in options.items():
        if name not in hints:
            close = get_close_matches(name, hints, n=1)
            known = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(hints))}"
            raise ConfigError(f"learner: {algorithm.__name__} takes no {name} ({known})")
        choices = _choices(hints[name])
        if not any(_fits(value, choice) for choice in choices):
            wanted = " or ".join(_WORDS[kind] for kind in choices if kind in _WORDS)
            raise ConfigError(f"learner: {name} must be {wanted or 'left out'}, got {value!r}")
        if name in _AT_LEAST_1 and value is not None and value < 1:
            raise ConfigError(f"learner: {name} must be at least 1, got {value!r}")


def _hints(algorithm: type) -> dict[str, Any]:
    """Types by argument; where a class passes the rest on, with those of its base."""
    hints: dict[str, Any] = {}
    for kind in algorithm.__mro__:
        if "__init__" not in vars(kind):
            continue
        make = vars(kind)["__init__"]
        named = {k: v for k, v in make.__annotations__.items() if k not in _NOT_OPTIONS}
        found = get_type_hints(SimpleNamespace(__annotations__=named), make.__globals__)
        hints = {**found, **hints}
        if "kwargs" not in make.__annotations__:
            break
    return hints


def _choices(hint: Any) -> tuple[Any, ...]:
    """What a hint stands for: classes that values may have."""
    parts = get_args(hint) if _is_union(hint) else (hint,)
    return tuple(get_origin(part) or part for part in parts)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _fits(value: Any, kind: Any) -> bool:
    if kind is Callable:
        return callable(value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
