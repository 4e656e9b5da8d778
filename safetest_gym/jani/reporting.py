"""Collect what is wrong with a document, each fault at its JSON path.

Places are linked pairs ``(parent, key)`` that end in ``(None, source)``: cheap to extend
while reading, and only written out when something is wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from safetest_gym.errors import JaniError, JaniErrorGroup
from safetest_gym.jani.numerals import integer_text

__all__ = ["MAX_ERRORS", "Column", "Place", "Report", "Shape", "describe", "quote", "suggest"]

MAX_ERRORS = 100
"""Reading stops after this many errors."""

Place = tuple[Any, str | int]

_MAX_SHOWN = 60
_MAX_CANDIDATES = 200
_HUGE_BITS = 256


class Column(str):
    """Ends places in an expression given as text: ``text:7``."""


def quote(word: str) -> str:
    """``word`` in quotation marks, cut when it is long."""
    return repr(word if len(word) <= _MAX_SHOWN else word[: _MAX_SHOWN - 1] + "…")


def describe(data: object) -> str:
    """A few words for any JSON value, whatever its size."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, str):
        return f"the text {quote(data)}"
    if isinstance(data, dict):
        return "an object"
    if isinstance(data, list):
        return "a list"
    if isinstance(data, int) and data.bit_length() > _HUGE_BITS:
        return f"an integer of {len(integer_text(abs(data)))} digits"
    if isinstance(data, int | float):
        return str(data)
    return f"a Python {type(data).__name__}"


def suggest(word: str, candidates: Iterable[str]) -> str:
    """A did-you-mean hint, or an empty string."""
    near = [c for c in candidates if abs(len(c) - len(word)) <= 3 + len(word) // 4]
    if len(near) > _MAX_CANDIDATES:
        letters = set(word)
        near = [c for c in near if len(letters.symmetric_difference(c)) <= 4][:_MAX_CANDIDATES]
    if len(word) > 2 * _MAX_SHOWN:
        return ""
    found = difflib.get_close_matches(word, near, n=1, cutoff=0.6)
    if not found:
        lowered = {c.lower(): c for c in near}
        found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.7)
        found = [lowered[f] for f in found]
    return f"did you mean {quote(found[0])}?" if found else ""


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys an object may have; ``comment`` and ``x-…`` are fine everywhere."""

    what: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that mean something."""
        return self.required + self.optional


class Report:
    """The errors found so far, in the order found, each once."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str, str], JaniError] = {}

    def __len__(self) -> int:
        return len(self._errors)

    @property
    def errors(self) -> tuple[JaniError, ...]:
        """What was found."""
        return tuple(self._errors.values())

    def add(self, place: Place, message: str, hint: str = "") -> None:
        """Note an error.

        Raises:
            JaniErrorGroup: it is one more than `MAX_ERRORS`.
        """
        path, source = _write(place)
        if len(self._errors) >= MAX_ERRORS:
            self._errors["", "", ""] = JaniError(
                f"reading stopped after {MAX_ERRORS} errors", source=source
            )
            self.raise_errors()
        self._errors.setdefault(
            (source, path, message), JaniError(message, path=path, hint=hint, source=source)
        )

    def include(self, error: JaniError) -> None:
        """Take over an error, or all of a group."""
        for single in error.errors if isinstance(error, JaniErrorGroup) else (error,):
            self._errors.setdefault((single.source, single.path, single.message), single)

    @staticmethod
    def path(place: Place) -> str:
        """``place`` as a JSON path."""
        return _write(place)[0]

    def raise_errors(self) -> None:
        """Raise what was found: one error as itself, several as a group.

        Raises:
            JaniError: something was found.
        """
        errors = self.errors
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise JaniErrorGroup(f"{len(errors)} errors", errors)

    def take_object(self, data: object, place: Place, shape: Shape) -> dict[str, Any] | None:
        """``data`` if it is an object with all required keys, else None; unknown keys are noted."""
        if not isinstance(data, dict):
            self.add(place, f"expected {shape.what} (an object), found {describe(data)}")
            return None
        for key in data:
            if key not in shape.required and key not in shape.optional:
                self.unknown_key(key, place, shape)
        complete = True
        for key in shape.required:
            if key not in data:
                complete = False
                self.add(place, f"{shape.what} needs {quote(key)}")
        return data if complete else None

    def unknown_key(self, key: str, place: Place, shape: Shape) -> None:
        """Note that ``shape`` has no ``key``, unless it is a comment or an extension."""
        if key != "comment" and not key.startswith("x-"):
            hint = suggest(key, shape.keys) or f"known here: {', '.join(shape.keys)}"
            self.add((place, key), f"unknown key {quote(key)} in {shape.what}", hint)

    def take_list(self, data: object, place: Place, what: str) -> list[Any]:
        """``data`` if it is a list, else an empty one."""
        if isinstance(data, list):
            return data
        self.add(place, f"expected a list of {what}, found {describe(data)}")
        return []

    def take_name(self, data: object, place: Place, what: str) -> str | None:
        """``data`` if it can be a name, else None."""
        if not isinstance(data, str):
            self.add(place, f"expected the name of {what}, found {describe(data)}")
        elif not data or data.startswith("#"):
            self.add(
                place, f"{quote(data)} cannot be a name", "a name is not empty, its first sign no #"
            )
        else:
            return data
        return None

    def take_choice(
        self, data: object, place: Place, what: str, known: Iterable[str]
    ) -> str | None:
        """``data`` if it is one of the ``known`` names, else None."""
        candidates = list(known) if not isinstance(known, dict | set | frozenset) else known
        if isinstance(data, str) and data in candidates:
            return data
        if isinstance(data, str):
            hint = suggest(data, candidates) or _listed(candidates)
            self.add(place, f"unknown {what} {quote(data)}", hint)
        else:
            self.add(place, f"expected the name of {what}, found {describe(data)}")
        return None


def _listed(candidates: Iterable[str]) -> str:
    shown = sorted(candidates)
    if not shown:
        return "there is none"
    return f"known: {', '.join(shown)}" if len(shown) <= 8 else ""


def _write(place: Place) -> tuple[str, str]:
    keys: list[str] = []
    parent, key = place
    while parent is not None:
        if isinstance(key, int):
            keys.append(f"[{key}]")
        elif key.replace("-", "_").isidentifier():
            keys.append(f".{key}")
        else:
            keys.append(f"[{quote(key)}]")
        parent, key = parent
    if isinstance(key, Column):
        return str(key), ""
    if len(keys) > 400:
        keys = [*keys[:200], f"…{len(keys) - 400} levels…", *keys[-200:]]
    return "$" + "".join(reversed(keys)), str(key)
