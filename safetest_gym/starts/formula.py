"""Conditions in a canonical form that shrinks as variables get values.

Equal nodes of one `Formulas` are one object, so what is left of a condition after
different partial assignments can be compared by identity. Three kinds of atoms: a column
inside a set of intervals, a linear comparison of ints, and a comparison of anything else,
which is decided by its bounds or when all its columns have values. An operation without a
value makes its atom `UNDEFINED`; ``∧`` with a false operand and ``∨`` with a true one have
a value all the same, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from safetest_gym.starts.intervals import Intervals

__all__ = [
    "FALSE",
    "TRUE",
    "UNDEFINED",
    "Application",
    "Column",
    "Comparison",
    "Constant",
    "Formula",
    "Inside",
    "Junction",
    "Number",
    "Sum",
    "Truth",
    "columns_of",
]

_NONE: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Truth:
    """A formula without columns; there are three."""

    name: str
    scope: frozenset[int] = _NONE
    rank: int = 0

    def __reduce__(self) -> str:
        return self.name


TRUE, FALSE, UNDEFINED = Truth("TRUE"), Truth("FALSE"), Truth("UNDEFINED")


@dataclass(slots=True, eq=False)
class Inside:
    """``column`` has a value in ``intervals``: neither no value nor every value it can have."""

    column: int
    intervals: Intervals
    scope: frozenset[int]
    rank: int


@dataclass(slots=True, eq=False)
class Comparison:
    """``left symbol right``; between ints, ``right`` is 0 and ``symbol`` not ``<``."""

    symbol: str
    left: Number
    right: Number
    scope: frozenset[int]
    rank: int


@dataclass(slots=True, eq=False)
class Junction:
    """``∧`` or ``∨`` of two or more formulas, none of them of the same symbol."""

    symbol: str
    operands: tuple[Formula, ...]
    scope: frozenset[int]
    rank: int


@dataclass(slots=True, eq=False)
class Constant:
    """A number; None for an operation that has no value."""

    value: int | float | None
    scope: frozenset[int] = _NONE
    rank: int = 0

    @property
    def integer(self) -> bool:
        """Is it an int?"""
        return isinstance(self.value, int)

    @property
    def low(self) -> float:
        """Least value."""
        return self.value if self.value is not None else float("-inf")

    @property
    def high(self) -> float:
        """Greatest value."""
        return self.value if self.value is not None else float("inf")


@dataclass(slots=True, eq=False)
class Column:
    """The value of a column of the state, an int or a real."""

    column: int
    integer: bool
    low: float
    high: float
    scope: frozenset[int]
    rank: int


@dataclass(slots=True, eq=False)
class Sum:
    """``constant`` + sum of coefficient * term, over ints; exact."""

    constant: int
    terms: tuple[tuple[Term, int], ...]
    low: float
    high: float
    scope: frozenset[int]
    rank: int
    integer: bool = field(default=True, init=False)


@dataclass(slots=True, eq=False)
class Application:
    """Any other operation; the first operand of ``ite`` is a formula."""

    symbol: str
    operands: tuple[Formula | Number, ...]
    integer: bool
    low: float
    high: float
    scope: frozenset[int]
    rank: int


Term = Column | Application
Number = Constant | Column | Sum | Application
Formula = Truth | Inside | Comparison | Junction


def columns_of(nodes: Sequence[Formula | Number]) -> frozenset[int]:
    """The columns that any of ``nodes`` mentions."""
    scopes = {node.scope for node in nodes}
    return next(iter(scopes)) if len(scopes) == 1 else _NONE.union(*scopes)
