"""How a state is packed into 64-bit words.

Bounded ints and bools take as many bits as their bounds need and hold ``value - lower``;
reals (as IEEE doubles) and unbounded ints take a word of their own. No field straddles
two words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from safetest_gym.jani.tree import Variable

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

    @property
    def mask(self) -> int:
        """The field's bits within its word."""
        return ((1 << self.width) - 1) << self.shift


@dataclass(frozen=True, slots=True)
class Layout:
    """Fields in variable order and the number of words of a packed state."""

    fields: tuple[Field, ...]
    num_words: int

    def of(self, variable: Variable) -> Field:
        """The field of ``variable``."""
        for field in self.fields:
            if field.variable is variable:
                return field
        raise KeyError(variable.name)


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
    if variable.kind == "real" or variable.lower is None or variable.upper is None:
        return 64, 0
    lower, upper = int(variable.lower), int(variable.upper)
    width = (upper - lower).bit_length()
    return (64, 0) if width > 62 else (width, lower)
