"""JSON text nested too deeply for Python's own parser, which recurses in C."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

__all__ = ["measure_depth", "parse_deep"]

_OTHERS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_scan_string: Callable[[str, int], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]  # not in its stubs
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_BAD_NUMBERS = ("NaN", "Infinity", "-Infinity")


def measure_depth(raw: bytes) -> int:
    """How deep brackets nest in JSON text; exact if the text is well-formed."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(raw.split(b'"')[::2]).translate(_STEPS, _OTHERS)
    return max(accumulate(array("b", brackets)), default=0)


def parse_deep(
    text: str,
    make_object: Callable[[list[tuple[str, Any]]], dict[str, Any]],
    make_real: Callable[[str], float],
    make_integer: Callable[[str], int | float],
    make_bad_number: Callable[[str], float],
) -> Any:
    """``json.loads`` without recursion.

    Raises:
        json.JSONDecodeError: it is no JSON.
    """
    return _Parser(text, make_object, make_real, make_integer, make_bad_number).document()


@dataclass(slots=True)
class _Parser:
    text: str
    make_object: Callable[[list[tuple[str, Any]]], dict[str, Any]]
    make_real: Callable[[str], float]
    make_integer: Callable[[str], int | float]
    make_bad_number: Callable[[str], float]
    position: int = 0
    # Open containers: their items so far, and for an object the key being read.
    open: list[tuple[list[Any], str | None]] = field(default_factory=list)

    def document(self) -> Any:
        """The one value in the text."""
        self._skip()
        while True:
            if self._opens():
                continue
            sign = self.text[self.position]
            if sign in "]}":  # of an empty container, just opened
                self.position += 1
                value: Any = [] if sign == "]" else self.make_object([])
            else:
                value = self._scalar()
            self._skip()
            while self.open:
                items, key = self.open.pop()
                items.append(value if key is None else (key, value))
                if self._take(","):
                    self.open.append((items, key if key is None else self._key()))
                    break
                if not self._take("]" if key is None else "}"):
                    raise self._error("Expecting ',' delimiter")
                value = items if key is None else self.make_object(items)
            else:
                if self.position < len(self.text):
                    raise self._error("Extra data")
                return value

    def _opens(self) -> bool:
        """Enter a container that is not empty; of an empty one, go to its end."""
        if self._take("["):
            if not self.text.startswith("]", self.position):
                self.open.append(([], None))
                return True
        elif self._take("{"):
            if not self.text.startswith("}", self.position):
                self.open.append(([], self._key()))
                return True
        elif not self.text[self.position : self.position + 1].strip("]}"):
            raise self._error("Expecting value")
        return False

    def _take(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.position):
            return False
        self.position += 1
        self._skip()
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def _error(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self.text, self.position)

    def _key(self) -> str:
        if not self.text.startswith('"', self.position):
            raise self._error("Expecting property name enclosed in double quotes")
        name, self.position = _scan_string(self.text, self.position + 1)
        self._skip()
        if not self._take(":"):
            raise self._error("Expecting ':' delimiter")
        return name

    def _scalar(self) -> Any:
        text, position = self.text, self.position
        if text.startswith('"', position):
            value, self.position = _scan_string(text, position + 1)
            return value
        found = _NUMBER.match(text, position)
        if found is not None:
            self.position = found.end()
            integral = found.group(2) is None and found.group(3) is None
            return (self.make_integer if integral else self.make_real)(found.group())
        for word, constant in _WORDS.items():
            if text.startswith(word, position):
                self.position += len(word)
                return constant
        for word in _BAD_NUMBERS:
            if text.startswith(word, position):
                self.position += len(word)
                return self.make_bad_number(word)
        raise self._error("Expecting value")
