"""JSON text nested too deeply for Python's own parser, which recurses in C."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable
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

    def scalar(position: int) -> tuple[Any, int]:
        if text.startswith('"', position):
            return _scan_string(text, position + 1)
        for word, value in _WORDS.items():
            if text.startswith(word, position):
                return value, position + len(word)
        for word in _BAD_NUMBERS:
            if text.startswith(word, position):
                return make_bad_number(word), position + len(word)
        found = _NUMBER.match(text, position)
        if found is None:
            raise json.JSONDecodeError("Expecting value", text, position)
        whole = found.group()
        integral = found.group(2) is None and found.group(3) is None
        return (make_integer if integral else make_real)(whole), found.end()

    def skip(position: int) -> int:
        found = _SPACE.match(text, position)
        return found.end() if found else position

    def key(position: int) -> tuple[str, int]:
        if not text.startswith('"', position):
            message = "Expecting property name enclosed in double quotes"
            raise json.JSONDecodeError(message, text, position)
        name, position = _scan_string(text, position + 1)
        position = skip(position)
        if not text.startswith(":", position):
            raise json.JSONDecodeError("Expecting ':' delimiter", text, position)
        return name, skip(position + 1)

    # Open containers: their items so far, and for an object the key being read.
    stack: list[tuple[list[Any], str | None]] = []
    position = skip(0)
    while True:
        sign = text[position : position + 1]
        if sign in ("{", "["):
            position = skip(position + 1)
            closing = "}" if sign == "{" else "]"
            if not text.startswith(closing, position):
                name = None
                if sign == "{":
                    name, position = key(position)
                stack.append(([], name))
                continue
            value: Any = make_object([]) if sign == "{" else []
            position += 1
        else:
            value, position = scalar(position)
        position = skip(position)
        while stack:
            items, name = stack.pop()
            items.append(value if name is None else (name, value))
            if text.startswith(",", position):
                position = skip(position + 1)
                if name is not None:
                    name, position = key(position)
                stack.append((items, name))
                break
            if not text.startswith("]" if name is None else "}", position):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            value = items if name is None else make_object(items)
            position = skip(position + 1)
        else:
            if position < len(text):
                raise json.JSONDecodeError("Extra data", text, position)
            return value
