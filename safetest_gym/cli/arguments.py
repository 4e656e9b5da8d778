"""Commands with many options take one dataclass of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

__all__ = ["takes"]

_Options = TypeVar("_Options")


def takes(options: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Let typer see each field of a dataclass as a parameter of the command.

    Fields are annotated as typer wants parameters to be; their names and defaults are the
    parameters'.
    """
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
            annotation=hints[entry.name],
        )
        for entry in fields(options)  # type: ignore[arg-type]  # a dataclass
    ]

    def decorate(command: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            command(options(**given))

        wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        return wrapped

    return decorate
