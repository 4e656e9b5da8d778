"""The explicit graph of all reachable states, and its whole safe set at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.growing import GraphBuilder
from safetest_gym.engine.kernels.graph import predecessors_kernel, propagate_kernel
from safetest_gym.errors import LimitError

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]  # has no stubs

    from safetest_gym.task import Task

__all__ = ["ReachabilityGraph", "build_graph", "unsafety_ranks"]

MAX_DRAWN = 10_000
"""States that an export to other tools may have."""


@dataclass(frozen=True, eq=False)
class ReachabilityGraph:
    """States are numbered in the order of discovery, breadth first; initial ones come first.

    Exploration does not stop at failing and goal states. Equal outcomes of one choice stay
    apart.

    Attributes:
        packed: the states, as the engine packs them.
        kinds: per state, bit 0 failing, bit 1 goal.
        num_initial: how many states are initial.
        first_choice: choices of state s are ``first_choice[s] : first_choice[s + 1]``.
        choice_action: the task's action per choice.
        first_outcome: outcomes of choice c are ``first_outcome[c] : first_outcome[c + 1]``.
        outcome: the state per outcome.
        probability: per outcome; edges of one label are equally likely.
    """

    task: Task
    packed: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    num_initial: int
    first_choice: NDArray[np.int64]
    choice_action: NDArray[np.int32]
    first_outcome: NDArray[np.int64]
    outcome: NDArray[np.int32]
    probability: NDArray[np.float64]

    @property
    def num_states(self) -> int:
        """How many states are reachable."""
        return len(self.packed)

    @property
    def states(self) -> NDArray[Any]:
        """State vectors (n, V)."""
        return self.task.engine.unpack(self.packed)

    @property
    def failing(self) -> NDArray[np.bool_]:
        """Which states fail."""
        mask: NDArray[np.bool_] = (self.kinds & 1) != 0
        return mask

    @property
    def goal(self) -> NDArray[np.bool_]:
        """Which states satisfy the goal condition, failing or not."""
        mask: NDArray[np.bool_] = (self.kinds & 2) != 0
        return mask

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """Per state 0 if it is safe, else 1 + the steps that failing needs at most."""
        return unsafety_ranks(self.kinds, self.first_choice, self.first_outcome, self.outcome)

    @property
    def safe(self) -> NDArray[np.bool_]:
        """Which states are safe; computed once, in time linear in the graph."""
        mask: NDArray[np.bool_] = self.ranks == 0
        return mask

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """For small graphs: nodes with variables, failing, goal, safe; edges per outcome.

        Edge attributes: action (its name), choice (number), probability.

        Raises:
            LimitError: there are more than `MAX_DRAWN` states.
        """
        import networkx

        if self.num_states > MAX_DRAWN:
            raise LimitError(
                f"{self.num_states} states are too many to export, at most {MAX_DRAWN}"
            )
        graph: networkx.MultiDiGraph[int] = networkx.MultiDiGraph(name=self.task.name)
        names = [variable.name for variable in self.task.variables]
        for s, values in enumerate(self.states.tolist()):
            graph.add_node(
                s,
                **dict(zip(names, values, strict=True)),
                failing=bool(self.failing[s]),
                goal=bool(self.goal[s]),
                safe=bool(self.safe[s]),
                initial=s < self.num_initial,
            )
        owner = choice_owners(self.first_choice).tolist()
        for choice, action in enumerate(self.choice_action.tolist()):
            for o in range(int(self.first_outcome[choice]), int(self.first_outcome[choice + 1])):
                graph.add_edge(
                    owner[choice],
                    int(self.outcome[o]),
                    action=self.task.actions[action],
                    choice=choice,
                    probability=float(self.probability[o]),
                )
        return graph

    def write_graphml(self, path: str | Path) -> None:
        """Write `to_networkx` as GraphML."""
        import networkx

        networkx.write_graphml(self.to_networkx(), path)


def build_graph(
    task: Task,
    *,
    starts: Literal["default", "all"] | NDArray[Any] = "all",
    max_states: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReachabilityGraph:
    """Explore everything that can be reached.

    Args:
        starts: state vectors (n, V), ``all`` start states of the property, or the model's
            own (``default``).
        max_states: raise `LimitError` beyond so many.
        progress: called now and then with states known and states still to expand.
    """
    if isinstance(starts, str):
        chosen = task.default_initial if starts == "default" else task.initial
        starts = chosen.enumerate(max_states or 10_000_000)
    builder = GraphBuilder(task, starts, max_states)
    builder.run(progress)
    kinds, first_choice, action, first_outcome, outcome, probability = builder.arrays()
    return ReachabilityGraph(
        task=task,
        packed=builder.packed,
        kinds=kinds,
        num_initial=builder.num_initial,
        first_choice=first_choice,
        choice_action=action,
        first_outcome=first_outcome,
        outcome=outcome,
        probability=probability,
    )


def choice_owners(first_choice: NDArray[np.int64]) -> NDArray[np.int32]:
    """Per choice, its state."""
    return np.repeat(np.arange(len(first_choice) - 1, dtype=np.int32), np.diff(first_choice))


def unsafety_ranks(
    kinds: NDArray[np.uint8],
    first_choice: NDArray[np.int64],
    first_outcome: NDArray[np.int64],
    outcome: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Per state of a graph 0 if it is safe, else 1 + the steps that failing needs at most.

    Every choice of an unsafe state that neither fails nor is a goal has an outcome of
    smaller rank.
    """
    states, choices = len(kinds), len(first_outcome) - 1
    first_entry = np.zeros(states + 2, np.int64)
    entries = np.empty(len(outcome), np.int32)
    predecessors_kernel(first_outcome, outcome, first_entry, entries)
    rank = np.zeros(states, np.int32)
    alive = np.ones(choices, np.uint8)
    work = rank, alive, np.empty(states, np.int32), np.empty(states, np.int32)
    propagate_kernel(kinds, first_choice, choice_owners(first_choice), first_entry, entries, work)
    return rank
