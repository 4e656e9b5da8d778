"""Room for recursion over deeply nested expressions.

Recursive passes must recurse from plain Python code, not through C (no generator
expression, ``map`` or ``sorted`` key around the recursive call): then depth costs heap
memory only.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["MAX_DEPTH", "deep_recursion"]

MAX_DEPTH = 100_000
"""Documents nested deeper than this are refused."""

_lock = threading.Lock()
_users = 0
_usual_limit = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the interpreter's recursion limit while inside; nested and threaded use is fine."""
    global _users, _usual_limit
    with _lock:
        if _users == 0:
            _usual_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual_limit, 20 * MAX_DEPTH))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_usual_limit)
