"""Bytes to JSON data, refusing what JSON does not allow.

Python's own parser does the work; `safetest_gym.jani.nesting` takes over for documents
nested too deeply for it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetest_gym.errors import JaniError
from safetest_gym.jani.depth import MAX_DEPTH, deep_recursion
from safetest_gym.jani.nesting import measure_depth, parse_deep
from safetest_gym.jani.numerals import parse_integer
from safetest_gym.jani.reporting import Place, Report, quote, suggest

__all__ = ["Document", "Source", "load_document", "parse_document"]

Source = str | os.PathLike[str] | Mapping[str, Any] | list[Any]

SHALLOW = 400
"""Documents nested no deeper than this may be given to recursive C code."""

_USUAL_DIGITS = 600

_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Document:
    """JSON data and where it came from.

    Attributes:
        name: the file as the user gave it; empty for data.
        directory: what file names in the document are relative to.
        simple: whether recursive C code can handle it (nesting, size of numbers).
    """

    data: Any
    name: str = ""
    directory: Path = field(default_factory=Path)
    simple: bool = True

    @property
    def root(self) -> Place:
        """The place of the whole document."""
        return (None, self.name)


def load_document(source: Source, report: Report) -> Document:
    """Read a JSON file, or check JSON data that somebody else parsed.

    Keys that occur twice are noted in ``report``, reading goes on with the last one.

    Raises:
        JaniError: there is no such file, or it is not JSON.
    """
    if not isinstance(source, str | os.PathLike):
        depth, big = _audit(source, (None, ""), Report(), _Oddities(), foreign=True)
        return Document(source, simple=depth <= SHALLOW and not big)
    name = os.fspath(source)
    return parse_document(_read_bytes(name), name, report)


def _read_bytes(name: str) -> bytes:
    hint = "this looks like JSON text; give a file name or json.loads(text)"
    if name.lstrip()[:1] in ("{", "["):
        raise JaniError(f"no file {quote(name)}", source=quote(name), hint=hint)
    try:
        path = Path(name)
        if path.is_dir():
            raise JaniError("this is a directory, not a file", source=name)
        if path.exists() and not path.is_file():
            raise JaniError("this is not a regular file", source=name)
        return path.read_bytes()
    except JaniError:
        raise
    except FileNotFoundError:
        raise JaniError("no such file", source=name, hint=_similar_file(name)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise JaniError(f"cannot read the file: {reason}", source=name) from error


def _similar_file(name: str) -> str:
    try:
        path = Path(name)
        return suggest(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return ""


def parse_document(raw: bytes, name: str, report: Report) -> Document:
    """Parse the bytes of a file; see `load_document`."""
    text = _decode(raw, name)
    oddities = _Oddities()
    depth = measure_depth(raw)
    if depth > MAX_DEPTH:
        raise JaniError(f"nested {depth} levels deep, more than {MAX_DEPTH}", source=name)
    try:
        data = _parse(text, depth, oddities)
    except json.JSONDecodeError as error:
        raise _syntax_error(error, name) from None
    if oddities or _SURROGATE.search(raw):
        _audit(data, (None, name), report, oddities, foreign=False)
    return Document(
        data,
        name,
        Path(name).parent,
        simple=depth <= SHALLOW and not oddities.big_integers,
    )


def _decode(raw: bytes, name: str) -> str:
    if encoding := _BYTE_ORDER_MARKS.get(raw[:2]):
        raise JaniError(f"the file is {encoding}, not UTF-8", source=name, hint="save it as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JaniError(
            f"the file is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}",
            source=name,
            hint="save it as UTF-8",
        ) from None


def _syntax_error(error: json.JSONDecodeError, name: str) -> JaniError:
    where = f"line {error.lineno}, column {error.colno}"
    if not error.doc.strip():
        return JaniError("the file is empty", source=name)
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
        return JaniError(
            f"not JSON: the text ends too early, at {where}", source=name, hint="is it complete?"
        )
    reason = error.msg[:1].lower() + error.msg[1:]
    return JaniError(f"not JSON: {reason}, at {where}", source=name)


class _Oddities:
    """What the parser hooks met; found again in the data by identity."""

    def __init__(self) -> None:
        self.numbers: dict[int, tuple[float, str]] = {}
        self.duplicates: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self.big_integers = False

    def __bool__(self) -> bool:
        return bool(self.numbers or self.duplicates)

    def bad_number(self, text: str) -> float:
        value = float(text.lower().replace("inity", ""))
        self.numbers[id(value)] = value, f"{text} is no finite number"
        return value

    def real(self, text: str) -> float:
        value = float(text)
        return value if math.isfinite(value) else self.bad_number(text)

    def integer(self, text: str) -> int | float:
        if len(text) <= _USUAL_DIGITS:
            return int(text)
        self.big_integers = True
        try:
            return parse_integer(text)
        except OverflowError as error:
            value = float("nan")
            self.numbers[id(value)] = value, str(error)
            return value

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            counts = Counter([key for key, _ in pairs])
            self.duplicates[id(data)] = data, [key for key in counts if counts[key] > 1]
        return data


def _parse(text: str, depth: int, oddities: _Oddities) -> Any:
    hooks: dict[str, Any] = {
        "object_pairs_hook": oddities.object,
        "parse_float": oddities.real,
        "parse_constant": oddities.bad_number,
    }
    if depth <= SHALLOW:
        with deep_recursion():  # however deep the caller is; the document is not
            try:
                return json.loads(text, **hooks)
            except json.JSONDecodeError:
                raise
            except ValueError:  # an integer with more digits than int() takes
                return json.loads(text, parse_int=oddities.integer, **hooks)
    return parse_deep(text, oddities.object, oddities.real, oddities.integer, oddities.bad_number)


def _audit(
    data: Any, root: Place, report: Report, oddities: _Oddities, *, foreign: bool
) -> tuple[int, bool]:
    """Walk over the data and note all that is no proper JSON; return depth and big integers.

    Raises:
        JaniError: something makes no sense as data (a number, a text, a Python object).
    """
    fatal = Report()
    stack: list[tuple[Any, Place, int]] = [(data, root, 1)]
    deepest, big = 0, False
    while stack:
        item, place, depth = stack.pop()
        deepest = max(deepest, depth)
        if depth > MAX_DEPTH:
            fatal.add(root, f"nested more than {MAX_DEPTH} levels deep")
            break
        if type(item) is dict:
            _audit_keys(item, place, report, oddities, fatal)
            for key, value in reversed(item.items()):
                stack.append((value, (place, key), depth + 1))
        elif type(item) is list:
            for index in range(len(item) - 1, -1, -1):
                stack.append((item[index], (place, index), depth + 1))
        elif type(item) is float and not math.isfinite(item):
            _, text = oddities.numbers.get(id(item), (item, f"{item} is no finite number"))
            fatal.add(place, text)
        elif type(item) is str:
            if not _encodable(item):
                fatal.add(place, "the text has half of a surrogate pair")
        elif type(item) is int:
            big = big or item.bit_length() > 3 * _USUAL_DIGITS
        elif foreign and item is not None and type(item) not in (bool, float):
            fatal.add(place, f"a Python {type(item).__name__} is no JSON data")
    fatal.raise_errors()
    return deepest, big


def _audit_keys(
    item: dict[Any, Any], place: Place, report: Report, oddities: _Oddities, fatal: Report
) -> None:
    if id(item) in oddities.duplicates:
        for key in oddities.duplicates[id(item)][1]:
            report.add((place, key), f"key {quote(key)} occurs twice", "keep one")
    for key in item:
        if type(key) is not str:
            fatal.add(place, f"a key is a Python {type(key).__name__}, not a text")
        elif not _encodable(key):
            fatal.add(place, "a key has half of a surrogate pair")


def _encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)
