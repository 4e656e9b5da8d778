"""The one tree of errors; each class also inherits the builtin it refines.

A message says what is wrong, where, and what to try; the same facts sit on attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ActionError",
    "CacheError",
    "CertificateError",
    "ConfigError",
    "EngineError",
    "EvaluationError",
    "JaniError",
    "JaniErrorGroup",
    "LimitError",
    "OutOfBoundsError",
    "PolicyError",
    "SafetestError",
    "StartError",
    "StateError",
    "StoreError",
    "WorkerError",
]


class SafetestError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigError(SafetestError, ValueError):
    """An option has a value that makes no sense."""


class JaniError(SafetestError, ValueError):
    """A JANI document is wrong at one place.

    Attributes:
        message: what is wrong.
        path: JSON path of the place, ``$`` for the whole document; for expressions
            given as text, the column (``text:7``).
        hint: what to try, or an empty string.
        source: the file, where it is known.
    """

    def __init__(self, message: str, *, path: str = "$", hint: str = "", source: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint
        self.source = source

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        hint = f" ({self.hint})" if self.hint else ""
        place = "" if where and self.path == "$" else f" at {self.path}"
        return f"{where}{self.message}{place}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_jani_error, (self.message, self.path, self.hint, self.source)


def _rebuild_jani_error(message: str, path: str, hint: str, source: str) -> JaniError:
    return JaniError(message, path=path, hint=hint, source=source)


class JaniErrorGroup(ExceptionGroup[JaniError], JaniError):
    """Several faults of one document; ``errors`` lists them, ``path`` is the first one's."""

    message: str

    def __new__(cls, message: str, errors: Sequence[JaniError]) -> JaniErrorGroup:
        return super().__new__(cls, message, errors)

    def __init__(self, message: str, errors: Sequence[JaniError]) -> None:
        self.errors = tuple(errors)
        self.path = self.errors[0].path
        self.hint = self.errors[0].hint
        self.source = self.errors[0].source

    def __str__(self) -> str:
        return "\n".join([f"{len(self.errors)} errors", *map(str, self.errors)])

    def __reduce__(self) -> tuple[object, ...]:
        return JaniErrorGroup, (f"{len(self.errors)} errors", self.errors)

    def derive(self, excs: Sequence[JaniError]) -> JaniErrorGroup:  # type: ignore[override]  # only JaniErrors are inside
        """Split groups stay groups of this kind."""
        return JaniErrorGroup(f"{len(excs)} errors", excs)


class EvaluationError(SafetestError, ArithmeticError):
    """An expression has no value in a state (division by zero, overflow, bad probability)."""


class OutOfBoundsError(EvaluationError):
    """An assignment leaves its variable's bounds.

    The message names edge, destination, variable, value and state.
    """


class ActionError(SafetestError, ValueError):
    """An action that does not exist or is not applicable in the state."""


class PolicyError(SafetestError, ValueError):
    """A policy that does not fit its task, or that we cannot reproduce exactly."""


class StateError(SafetestError, ValueError):
    """A vector or mapping that is no state of the task."""


class StartError(SafetestError, ValueError):
    """The start states cannot be counted, sampled or listed as asked."""


class StoreError(SafetestError, ValueError):
    """A file of faults that cannot be read or written, or that belongs to another task."""


class CacheError(SafetestError, ValueError):
    """Saved facts of a decider that are broken, or of another task."""


class CertificateError(SafetestError, ValueError):
    """A certificate that is broken, or proves nothing about the task."""


class LimitError(SafetestError, RuntimeError):
    """A limit the caller set was reached; partial results are on ``partial``."""

    def __init__(self, message: str, partial: object = None) -> None:
        super().__init__(message)
        self.partial = partial


class EngineError(SafetestError, RuntimeError):
    """The engine contradicts itself: a defect of ours, please report it."""


class WorkerError(SafetestError, RuntimeError):
    """Workers that share the work were lost again and again."""
