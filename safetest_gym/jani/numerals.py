"""Integers of any length to and from decimal text.

Python refuses conversions beyond some thousand digits unless a global limit is changed;
cutting the text in halves needs no such change.
"""

from __future__ import annotations

__all__ = ["MAX_DIGITS", "integer_text", "parse_integer"]

MAX_DIGITS = 100_000
"""Longer integers are refused."""

_PIECE = 600


def parse_integer(text: str) -> int:
    """The value of ``text``, an optional minus and digits.

    Raises:
        OverflowError: more than `MAX_DIGITS` digits.
    """
    digits = text.removeprefix("-")
    if len(digits) > MAX_DIGITS:
        raise OverflowError(f"an integer of {len(digits)} digits; the limit is {MAX_DIGITS}")
    value = _parse(digits)
    return -value if text.startswith("-") else value


def _parse(digits: str) -> int:
    if len(digits) <= _PIECE:
        return int(digits)
    half = len(digits) // 2
    return int(_parse(digits[:-half]) * 10**half + _parse(digits[-half:]))


def integer_text(value: int) -> str:
    """``str(value)`` without a limit."""
    if value < 0:
        return "-" + integer_text(-value)
    if value.bit_length() <= 3 * _PIECE:
        return str(value)
    half = int(value.bit_length() * 0.30103) // 2
    high, low = divmod(value, 10**half)
    return integer_text(high) + integer_text(low).rjust(half, "0")
