"""One environment as a block of int64 words: addresses of its buffers and of its code.

A kernel that is given the block's address alone can step the environment; numba's cost
per argument is paid once, and a batch is an array of blocks.
"""

from __future__ import annotations

__all__ = [
    "ACTIONS",
    "APPLICABLE",
    "CAPACITY",
    "CLASSIFY",
    "CONSTANTS",
    "DOUBLE",
    "ENDS",
    "EVALUATE",
    "EXPAND",
    "EXPRESSIONS",
    "FLOATING",
    "GRANULARITY",
    "MASK",
    "NUMBER",
    "OBSERVATION",
    "OFFSET",
    "OUTCOMES",
    "PROB",
    "RANDOM",
    "REWARD",
    "SCALE",
    "SIZE",
    "STATE",
    "SUCC",
    "UNPACK",
    "VALUES",
    "VALUE_AFTER",
    "VALUE_BEFORE",
    "VARIABLES",
    "WEIGHTS",
    "WORDS",
]

STATE, RANDOM, MASK, VALUES, OBSERVATION, REWARD, VALUE_BEFORE, VALUE_AFTER = range(8)
"""Addresses of what each environment has for itself; `REWARD` is one double."""

SUCC, PROB, NUMBER, ENDS, CAPACITY = range(8, 13)
"""Row buffers, which may be shared, and how many rows they hold."""

WORDS, VARIABLES, ACTIONS, GRANULARITY, FLOATING, DOUBLE = range(13, 19)
"""Sizes; are state vectors float64; are observations float64."""

OFFSET, SCALE, EXPRESSIONS, WEIGHTS, CONSTANTS = range(19, 24)
"""Observation scaling (address 0: none) and the reward plan."""

EXPAND, OUTCOMES, APPLICABLE, CLASSIFY, UNPACK, EVALUATE = range(24, 30)
"""Addresses of machine code; `EVALUATE` 0 if the reward has no expressions."""

SIZE = 32
