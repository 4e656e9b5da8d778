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


def _strong(size: int, sources: Ints, targets: Ints) -> Ints:
    """Number of the strongly connected part per node (Tarjan, without recursion)."""
    order = np.argsort(sources, kind="stable")
    heads = targets[order].tolist()
    first = np.searchsorted(sources[order], np.arange(size + 1)).tolist()
    index, low, part = [-1] * size, [0] * size, [-1] * size
    place = list(first[:-1])
    stack: list[int] = []
    parts = count = 0
    for root in range(size):
        path = [root] if index[root] < 0 else []
        while path:
            node = path[-1]
            if index[node] < 0:
                index[node] = low[node] = count
                count += 1
                stack.append(node)
            if place[node] < first[node + 1]:
                target = heads[place[node]]
                if index[target] < 0:
                    path.append(target)
                    continue
                place[node] += 1
                if part[target] < 0:
                    low[node] = min(low[node], low[target])
                continue
            path.pop()
            if low[node] == index[node]:
                member = -1
                while member != node:
                    member = stack.pop()
                    part[member] = parts
                parts += 1
    return np.array(part, np.int64)


def _weak(size: int, sources: Ints, targets: Ints) -> Ints:
    """Least node of the connected part per node, directions aside."""
    label = np.arange(size)
    while True:
        least = np.minimum(label[sources], label[targets])
        new = label.copy()
        np.minimum.at(new, sources, least)
        np.minimum.at(new, targets, least)
        new = new[new]
        if np.array_equal(new, label):
            return label
        label = new


def end_components(part: Part) -> Ints:
    """Per state of the graph, the number of its maximal end component, or -1."""
    size = part.graph.size
    owner, target, row_choice = part.owner, part.target, part.row_choice
    kept = np.ones(len(part.choices), np.bool_)
    while True:
        rows = kept[row_choice]
        label = _strong(size, owner[row_choice[rows]], target[rows])
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
    labels = _weak(len(states), source[inside], graph.target[inside])
    return np.asarray(np.unique(labels, return_inverse=True)[1], np.int64)
