"""How a state is packed into 64-bit words.

Bounded ints and bools take as many bits as their bounds need and hold ``value - lower``;
reals (as IEEE doubles) and unbounded ints take a word of their own. No field straddles
two words.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.errors import JaniError
from safetest_gym.jani.tree import Value, Variable

__all__ = ["Field", "Layout", "lay_out"]


@dataclass(frozen=True, slots=True)
class Field:
    """Place of one variable: bits ``shift .. shift + width - 1`` of word ``word``.

    ``offset`` is subtracted before packing; 0 for fields of 64 bits.
    """

    variable: Variable
    word: int
    shift: int
    width: int
    offset: int

    def value(self, word: int) -> Value:
        """What the variable is in a state whose word (unsigned) that is."""
        bits = (word >> self.shift) & ((1 << self.width) - 1)
        if self.variable.kind == "real":
            return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
        if self.variable.kind == "bool":
            return bool(bits)
        return bits - 2**64 if self.width == 64 and bits >= 2**63 else bits + self.offset

    @property
    def mask(self) -> int:
        """The field's bits within its word."""
        return ((1 << self.width) - 1) << self.shift


@dataclass(frozen=True, slots=True)
class Layout:
    """Fields in variable order and the number of words of a packed state."""

    fields: tuple[Field, ...]
    num_words: int


def lay_out(variables: Sequence[Variable]) -> Layout:
    """Give every variable its bits: in order, each in the first word with room."""
    fields: list[Field] = []
    used: list[int] = []
    for variable in variables:
        width, offset = _width(variable)
        word = next((w for w, bits in enumerate(used) if bits + width <= 64), len(used))
        if word == len(used):
            used.append(0)
        fields.append(Field(variable, word, used[word], width, offset))
        used[word] += width
    return Layout(tuple(fields), max(1, len(used)))


def _width(variable: Variable) -> tuple[int, int]:
    if variable.kind == "bool":
        return 1, 0
    if variable.kind == "real":
        return 64, 0
    lower = INT_MIN if variable.lower is None else int(variable.lower)
    upper = INT_MAX if variable.upper is None else int(variable.upper)
    if lower > INT_MAX or upper < INT_MIN:
        raise JaniError(
            f"variable {variable.name!r} has no 64-bit int within its bounds", path=variable.path
        )
    width = (upper - lower).bit_length()
    return (64, 0) if width > 62 else (width, lower)
