"""End components, strongly connected parts that a policy can stay in, and bug regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.faults.task_graph import Part, TaskGraph

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["bug_regions", "end_components"]

Ints = NDArray[np.int64]


def _connected(size: int, sources: Ints, targets: Ints, *, strong: bool) -> Ints:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(sources), np.bool_)
    matrix = coo_array((ones, (sources, targets)), shape=(size, size))
    _, labels = connected_components(
        matrix.tocsr(), directed=True, connection="strong" if strong else "weak"
    )
    return np.asarray(labels, np.int64)


def end_components(part: Part) -> Ints:
    """Per state of the graph, the number of its maximal end component, or -1."""
    size = part.graph.size
    owner, target, row_choice = part.owner, part.target, part.row_choice
    kept = np.ones(len(part.choices), np.bool_)
    while True:
        rows = kept[row_choice]
        label = _connected(size, owner[row_choice[rows]], target[rows], strong=True)
        leaving = label[target] != label[owner[row_choice]]
        staying = kept.copy()
        staying[row_choice[leaving]] = False
        if np.array_equal(staying, kept):
            break
        kept = staying
    member = np.zeros(size, np.bool_)
    member[owner[kept]] = True
    result = np.full(size, -1, np.int64)
    result[member] = np.unique(label[member], return_inverse=True)[1]
    return result


def bug_regions(task: Task, states: NDArray[Any]) -> Ints:
    """Number of the region per bug state: states that single steps connect are one region.

    Args:
        states: distinct bug states (n, V).
    """
    if not len(states):
        return np.empty(0, np.int64)
    graph = TaskGraph(task, states, limit=1)
    source = np.repeat(graph.owner, np.diff(graph.first))
    inside = graph.target < len(states)
    labels = _connected(len(states), source[inside], graph.target[inside], strong=False)
    order = np.unique(labels, return_index=True)[1]
    place = np.empty(len(order), np.int64)
    place[np.argsort(order)] = np.arange(len(order))
    return place[labels]
