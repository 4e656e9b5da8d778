"""One interface to the solvers of linear and mixed-integer programs, and the choice of one."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.repair.stop import HardStop

__all__ = [
    "INTEGRALITY",
    "RESTRICTED_SIZE",
    "Allowance",
    "Basis",
    "Program",
    "Solution",
    "SolverChoice",
    "SolverName",
    "choose_solver",
]

SolverName = Literal["auto", "gurobi", "highs"]

INTEGRALITY = 1e-9
"""How far an integer may be off: what is switched off by large constants leaks in by that."""
RESTRICTED_SIZE = 2000
"""Variables, and constraints, that the licence inside Gurobi's wheel allows."""


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Which columns and rows of a linear program a vertex is not bound by: the basic ones.

    From that of a similar program, with as many basic ones as there are rows or nearly so,
    a solver gets to the optimum in few steps.
    """

    columns: NDArray[np.bool_]
    rows: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Program:
    """Minimise ``cost @ x`` under ``row_lower <= A x`` and bounds; ``A`` row by row.

    Attributes:
        start, columns, values: row r has ``columns[start[r]:start[r + 1]]``.
        integer: which variables must be integers.
        guess: a feasible point to begin with, if known.
        basis: for a linear program whose variables have no upper bounds, where to begin.
    """

    cost: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    start: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    row_lower: NDArray[np.float64]
    integer: NDArray[np.bool_] | None = None
    guess: NDArray[np.float64] | None = None
    basis: Basis | None = None

    @property
    def size(self) -> int:
        """The larger of the numbers of variables and rows."""
        return max(len(self.cost), len(self.row_lower))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Solution:
    """What a solver found.

    Attributes:
        point: the best point known, or None.
        bound: no point is cheaper.
        conflict: of an infeasible program, rows that have no point together; empty where
            the solver did not say.
        work: units it took, see `Allowance`.
        late: the clock ended it.
        basis: of the point, where a linear program is solved and the solver has one.
    """

    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    point: NDArray[np.float64] | None
    bound: float
    conflict: NDArray[np.int64]
    work: float = 0.0
    late: bool = False
    basis: Basis | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """When a solver is to stop.

    Attributes:
        work: of a mixed-integer program, in units of about a second of a processor; they are
            counted by what is done, so that the result depends on no clock.
        seconds: by the clock.
        gap: relative distance from the bound that is good enough.
    """

    work: float
    seconds: float
    gap: float


@dataclass(frozen=True, slots=True, eq=False)
class SolverChoice:
    """The solver for programs of any size, the one to be used where both can, and why.

    Attributes:
        name: what was asked for.
        gurobi: what Gurobi can do here.
        used: names of the solvers that solved something so far.
        notes: what a user should know about the choice.
        stop: when nothing more is to be solved but what is necessary.
    """

    name: SolverName
    gurobi: Literal["full", "restricted", "none"]
    used: set[str]
    notes: list[str]
    stop: HardStop

    def allows(self, program: Program) -> bool:
        """Can a program of this size be solved, as things are?"""
        return self.name != "gurobi" or self.gurobi == "full" or program.size <= RESTRICTED_SIZE

    def solve(
        self,
        program: Program,
        work: float = math.inf,
        gap: float = 1e-6,
        *,
        necessary: bool = False,
    ) -> Solution:
        """Solve, with Gurobi where it is there and its licence allows the size.

        Args:
            work: see `Allowance`.
            necessary: whatever the clock says.
        """
        seconds = math.inf if necessary else max(self.stop.left(), 0.01)
        solution = self._solve(program, Allowance(work=work, seconds=seconds, gap=gap))
        self.stop.cut |= solution.late
        return solution

    def _solve(self, program: Program, allowance: Allowance) -> Solution:
        fits = self.gurobi == "full" or program.size <= RESTRICTED_SIZE
        if self.name != "highs" and self.gurobi != "none" and fits:
            from safetest_gym.repair.gurobi import solve_gurobi

            self.used.add("gurobi")
            return solve_gurobi(program, allowance)
        if self.name == "gurobi":
            raise ConfigError(
                f"a program with {len(program.cost)} variables and {len(program.row_lower)} rows "
                f"exceeds Gurobi's restricted licence ({RESTRICTED_SIZE} of each); install a "
                "licence or use solver='auto' or 'highs'"
            )
        if self.name == "auto" and self.gurobi == "restricted":
            note = f"beyond {RESTRICTED_SIZE} variables or rows HiGHS is used (Gurobi licence)"
            if note not in self.notes:
                self.notes.append(note)
        from safetest_gym.repair.highs import solve_highs

        self.used.add("highs")
        return solve_highs(program, allowance)


def choose_solver(name: SolverName, stop: HardStop | None = None) -> SolverChoice:
    """Find out what Gurobi can do here; with ``"gurobi"`` it must be there.

    Args:
        stop: by default there is no limit of time.

    Raises:
        ConfigError: the solver asked for is not usable, with the reason.
    """
    if name not in ("auto", "gurobi", "highs"):
        raise ConfigError(f"solver must be 'auto', 'gurobi' or 'highs', got {name!r}")
    end = HardStop() if stop is None else stop
    if name == "highs":
        _require_highs()
        return SolverChoice(name, "none", set(), [], end)
    from safetest_gym.repair.gurobi import probe_gurobi

    ability, reason = probe_gurobi()
    if ability == "none":
        if name == "gurobi":
            raise ConfigError(f"Gurobi cannot be used: {reason}")
        _require_highs()
        return SolverChoice(name, ability, set(), [f"HiGHS is used: {reason}"], end)
    return SolverChoice(name, ability, set(), [], end)


def _require_highs() -> None:
    """Refuse where another library's copy of HiGHS would crash the process."""
    if _loaded("ortools"):
        raise ConfigError(
            "HiGHS cannot be used in a process that has loaded ortools (both bring the same "
            "symbols); repair in a process of its own, or use solver='gurobi'"
        )


def _loaded(name: str) -> Any:
    return sys.modules.get(name)
