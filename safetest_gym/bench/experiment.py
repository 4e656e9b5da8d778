"""What an experiment is: cells that are measured one by one, and how all are shown.

A cell is plain data that says all that decides its result; the facts measured in it are
plain data too. Both go into one line of ``cells.jsonl``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.bench.figures import Figure

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Facts",
    "Findings",
    "Row",
    "Setting",
    "Table",
    "find_experiment",
    "mean_or_none",
]

Cell = dict[str, Any]
Facts = dict[str, Any]

EXPERIMENTS = {
    "fuzzing": "unsafe runs found by uniform and biased fuzzing ([J] Fig. 2)",
    "oracles": "states decided over time, per algorithm ([J] Fig. 3, [S] Fig. 2, 4, 5)",
    "faults": "faults per unsafe run and time per state ([J] Fig. 4)",
    "policy_testing": "recall of oracles, bias and novelty in pool fuzzing ([D] Table 1)",
    "repair": "the debugging loop's %Unsafe and %Goal, per method ([C] Table 1, Fig. 2)",
    "callbacks": "what callbacks change at equal timesteps ([F])",
    "interleaving": "learning, repair and shields in different orders, at equal cost",
    "speed": "exploration, stepping and decisions, beside Storm and Momba where installed",
}
"""What there is; each is a module of this package that has an ``EXPERIMENT``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """How large an experiment is."""

    quick: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A cell and what was measured in it; ``facts`` is None where the cap ended it."""

    cell: Cell
    facts: Facts | None


@dataclass(frozen=True, slots=True)
class Table:
    """Text for people; the first column names, the others hold numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What the cells come to.

    Attributes:
        figures: by the name of their file, without suffix.
        notes: sentences that belong beside the tables.
    """

    tables: Sequence[Table]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One study.

    Attributes:
        plan: all cells, in the order in which they are measured.
        measure: facts of a cell; trained policies and the like are kept in the folder.
        present: of the rows that are there, be they all or not.
        isolated: measure each cell in a process of its own.
        cap_seconds: after this an isolated cell is given up.
    """

    name: str
    plan: Callable[[Setting], list[Cell]]
    measure: Callable[[Cell, Path], Facts]
    present: Callable[[Sequence[Row]], Findings]
    isolated: bool = False
    cap_seconds: float = 900.0


def mean_or_none(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def find_experiment(name: str) -> Experiment:
    """The experiment of this name; hyphens do for underscores.

    Raises:
        ConfigError: there is none.
    """
    key = name.replace("-", "_")
    if key not in EXPERIMENTS:
        close = get_close_matches(key, EXPERIMENTS, n=1)
        shown = ", ".join(known.replace("_", "-") for known in EXPERIMENTS)
        hint = f"did you mean {close[0].replace('_', '-')!r}?" if close else f"known: {shown}"
        raise ConfigError(f"there is no experiment {name!r} ({hint})")
    found: Experiment = import_module(f"safetest_gym.bench.{key}").EXPERIMENT
    return found
