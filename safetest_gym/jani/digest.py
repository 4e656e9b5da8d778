"""A stable hash over what decides a model's behaviour."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.document import Document
from safetest_gym.jani.numerals import integer_text
from safetest_gym.jani.tree import Value

__all__ = ["digest_model"]

_IRRELEVANT = frozenset(("name", "metadata", "properties", "features", "jani-version"))


def digest_model(document: Document, constants: Mapping[str, Value]) -> str:
    """Hex SHA-256 of the model in ``document`` with values for its open constants.

    Layout, key order, comments, metadata and properties do not matter.
    """
    data = {key: value for key, value in document.data.items() if key not in _IRRELEVANT}
    pieces: list[str] = []
    if document.simple:
        with deep_recursion():  # only the caller's own stack may be deep
            text = _dump(data)
            if '"comment":' in text or '"x-' in text:
                text = _dump(_without_comments(data))
        pieces.append(text)
    else:
        _write(data, pieces)
    pieces.append(_dump({name: _text(value) for name, value in constants.items()}))
    return hashlib.sha256("\n".join(pieces).encode()).hexdigest()


def _text(value: Value) -> str:
    return integer_text(value) if type(value) is int else repr(value)


def _dump(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _without_comments(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _without_comments(v) for k, v in data.items() if not _is_comment(k)}
    if isinstance(data, list):
        return [_without_comments(item) for item in data]
    return data


def _is_comment(key: str) -> bool:
    return key == "comment" or key.startswith("x-")


def _write(data: Any, pieces: list[str]) -> None:
    """The same without recursion, for data that is deep or has large integers."""
    stack: list[Any] = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            pieces.append("{")
            stack.append(_END)
            for key in sorted(item, reverse=True):
                if not _is_comment(key):
                    stack.append(item[key])
                    stack.append(_Key(key))
        elif isinstance(item, list):
            pieces.append("[")
            stack.append(_END)
            stack.extend(reversed(item))
        elif isinstance(item, _Key):
            pieces.append(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            pieces.append(integer_text(item))
        else:
            pieces.append("}" if item is _END else json.dumps(item))


class _Key(str):
    """A key, told apart from texts."""


_END = object()
