"""Runs of a policy towards failing states: [J] Algorithm 1 on the policy's graph.

A run is a list of state numbers. Continuations are searched breadth-first; a continuation
that cannot be finished (an array is full, Python must ask the policy) is begun anew later
and then ends the same, because randomness is only drawn when nothing can go wrong any more.

Going to the closest state may go round for ever. In a run that does, one search does not stop
where the closest state of a layer is unique; if it finds nothing that fails, it goes to any
state it has seen and wanders from there, one outcome after the other, twice as far each time.
A run that goes round without any choice is given up.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from safetest_gym.engine.kernels.fuzz_graph import (
    KNOWN,
    MEASURED,
    NEED_DISTANCES,
    expand_state,
)
from safetest_gym.engine.kernels.native import place
from safetest_gym.engine.kernels.stepping import random_unit

__all__ = [
    "CYCLE",
    "DEADLOCK",
    "EXHAUSTED",
    "FAILING",
    "GOAL",
    "GREEDY",
    "LENGTH",
    "LIMIT",
    "MORE",
    "NO_PATH",
    "PLACES",
    "RUN",
    "UNIFORM",
    "WEIGHTED",
    "fuzz_kernel",
]

UNIFORM, GREEDY, WEIGHTED = range(3)

FAILING, GOAL, DEADLOCK, LIMIT, CYCLE, EXHAUSTED = range(6)
"""How runs end; see `safetest_gym.fuzzing.runs.End`."""

NO_PATH, MORE = -8, -9
"""The path array must grow; the slice is over."""

RUN, LENGTH, HERE, FROM, CARE, POWER, LAPS, RANDOM, STAMP, SEEN, FORCED, ROUND = range(12)
"""Places in the progress: run, entries of the path, state now, where the run's path begins;
Brent's tortoise, power and lap; random stream; stamp of the search; states it has seen;
was there only one way to go on? does the run go round?"""

ESCAPES, WANDER = 12, 13
"""How often the run has left a circle, and steps that it still wanders."""

PLACES = 14

_NOWHERE, _ROUND = -100, -101
"""Nothing more can be reached; only round again."""


@njit(inline="always")
def _uniform(graph: Any, s: int, progress: Any) -> int:
    """An outcome of the policy's action, each different one as likely."""
    degree = expand_state(graph, s)
    if degree < 0:
        return degree
    if degree == 0:
        return _NOWHERE
    progress[FORCED] = degree == 1
    chosen = int(random_unit(place(progress, RANDOM)) * degree) if degree > 1 else 0
    return graph[10][graph[8][s] + chosen]


@njit(inline="always")
def _closest(distance: Any, queue: Any, first: int, last: int) -> Any:
    """The least distance in a layer and how many states have it."""
    least, count = distance[queue[first]], 1
    for i in range(first + 1, last):
        d = distance[queue[i]]
        if d < least:
            least, count = d, 1
        elif d == least:
            count += 1
    return least, count


@njit(cache=True, nogil=True)
def _pick_greedy(
    distance: Any, queue: Any, span: Any, least: float, count: int, progress: Any
) -> int:
    """One of the closest states of the last layer."""
    left = int(random_unit(place(progress, RANDOM)) * count) if count > 1 else 0
    for i in range(span[0], span[1]):
        if distance[queue[i]] == least:
            if left == 0:
                return queue[i]
            left -= 1
    return queue[span[1] - 1]


@njit(cache=True, nogil=True)
def _pick_weighted(distance: Any, queue: Any, last: int, progress: Any) -> int:
    """One of all states seen, with weight exp(-distance)."""
    least = math.inf
    for i in range(1, last):
        least = min(least, distance[queue[i]])
    total = 0.0
    for i in range(1, last):
        total += math.exp(least - distance[queue[i]]) if least < math.inf else 1.0
    left = random_unit(place(progress, RANDOM)) * total if last > 2 else 0.0
    for i in range(1, last):
        left -= math.exp(least - distance[queue[i]]) if least < math.inf else 1.0
        if left < 0:
            return queue[i]
    return queue[last - 1]


@njit(cache=True, nogil=True)
def _pick_any(queue: Any, depth: int, last: int, progress: Any) -> int:
    """One of all states seen in ``depth`` layers, or the last one if each has only one."""
    progress[FORCED] = last == depth + 1
    if progress[FORCED]:
        return queue[last - 1]
    return queue[1 + int(random_unit(place(progress, RANDOM)) * (last - 1))]


@njit(inline="always")
def _layer(graph: Any, search: Any, first: int, last: int, stamp: int) -> Any:
    """Append the next layer to the queue: its end (or a negative code), and a failing state.

    The second is -1 if none was found; the layer is left as it is at the first one.
    """
    kind, begin, edges = graph[5], graph[8], graph[10]
    seen, parent, queue = search
    end = last
    for i in range(first, last):
        u = queue[i]
        degree = expand_state(graph, u)
        if degree < 0:
            return degree, -1
        for e in range(begin[u], begin[u] + degree):
            v = edges[e]
            if seen[v] != stamp:
                seen[v] = stamp
                parent[v] = u
                queue[end] = v
                end += 1
                if kind[v] & 1:
                    return end, v
    return end, -1


@njit(cache=True, nogil=True)
def _search(graph: Any, search: Any, config: Any, s: int, progress: Any) -> int:
    """FindContinuation: where to go from s, `_NOWHERE`, `_ROUND`, or a negative code."""
    counters, distance = graph[4], graph[7]
    seen, _, queue = search
    progress[STAMP] += 1
    seen[s] = progress[STAMP]
    queue[0] = s
    first, last, depth = 0, 1, 0
    least, count = math.inf, 0
    while depth != config[1]:
        end, failing = _layer(graph, search, first, last, progress[STAMP])
        if end < 0:
            return end
        if failing >= 0:
            progress[FORCED] = 1
            return failing
        if end == last:
            return _ROUND if progress[ROUND] else _NOWHERE
        if counters[MEASURED] < counters[KNOWN]:
            return NEED_DISTANCES
        first, last = last, end
        depth += 1
        least, count = _closest(distance, queue, first, last)
        if (count == 1 and not progress[ROUND]) or last > config[3]:
            break
    progress[SEEN] += last
    if progress[ROUND]:
        return _pick_any(queue, depth, last, progress)
    if config[0] == GREEDY:
        progress[FORCED] = count == 1
        return _pick_greedy(distance, queue, (first, last), least, count, progress)
    progress[FORCED] = last == 2
    return _pick_weighted(distance, queue, last, progress)


@njit(inline="always")
def _steps(parent: Any, s: int, target: int) -> int:
    """Length of the way that the search found."""
    steps = 1
    at = parent[target]
    while at != s:
        at = parent[at]
        steps += 1
    return steps


@njit(cache=True, nogil=True)
def _go(config: Any, parent: Any, path: Any, target: int, steps: int, progress: Any) -> int:
    """Append the way from here to the target, cut at the step limit; 0 or `NO_PATH`."""
    if progress[LENGTH] + steps > path.shape[0]:
        return NO_PATH
    room = config[2] - (progress[LENGTH] - progress[FROM] - 1)
    at = target
    for i in range(steps - 1, -1, -1):
        if i < room:
            path[progress[LENGTH] + i] = at
        if i > 0:
            at = parent[at]
    steps = min(steps, room)
    progress[LENGTH] += steps
    progress[HERE] = path[progress[LENGTH] - 1]
    return 0


@njit(inline="always")
def _goes_round(progress: Any) -> bool:
    """Brent's test on the continuations since there last was a choice."""
    if not progress[FORCED]:
        progress[CARE] = progress[HERE]
        progress[POWER] = 1
        progress[LAPS] = 0
        return False
    if progress[HERE] == progress[CARE]:
        return True
    progress[LAPS] += 1
    if progress[LAPS] == progress[POWER]:
        progress[CARE] = progress[HERE]
        progress[POWER] *= 2
        progress[LAPS] = 0
    return False


@njit(inline="always")
def _ending(graph: Any, config: Any, path_steps: int, s: int) -> int:
    """How the run ends in state s, or -1."""
    kind = graph[5][s]
    if kind & 1:
        return FAILING
    if kind & 2:
        return GOAL
    return LIMIT if path_steps >= config[2] else -1


@njit(cache=True, nogil=True)
def _extend(graph: Any, search: Any, config: Any, path: Any, progress: Any) -> int:
    """One continuation: an ending, -1 to go on, or a negative code below."""
    s = progress[HERE]
    ending = _ending(graph, config, progress[LENGTH] - progress[FROM] - 1, s)
    if ending >= 0:
        return ending
    before = progress[RANDOM]
    wanders = config[0] == UNIFORM or progress[WANDER] > 0
    if wanders:
        target = _uniform(graph, s, progress)
    else:
        target = _search(graph, search, config, s, progress)
    if target == _NOWHERE:
        return DEADLOCK if graph[9][s] == 0 else EXHAUSTED
    if target == _ROUND:
        return CYCLE
    if target < 0:
        return target - 100
    steps = 1 if wanders else _steps(search[1], s, target)
    if _go(config, search[1], path, target, steps, progress) < 0:
        progress[RANDOM] = before
        return NO_PATH - 100
    if wanders:
        progress[WANDER] = max(progress[WANDER] - 1, 0)
    elif progress[ROUND] and not progress[FORCED]:
        progress[ROUND] = 0
        progress[WANDER] = 1 << min(progress[ESCAPES], 30)
        progress[ESCAPES] += 1
    progress[SEEN] += 1
    if graph[5][progress[HERE]] != 0 or not _goes_round(progress):
        return -1
    if config[0] == UNIFORM or progress[ROUND]:
        return CYCLE
    progress[ROUND] = 1
    return -1


@njit(cache=True, nogil=True)
def fuzz_kernel(
    graph: Any,
    search: Any,
    config: Any,
    starts: Any,
    seeds: Any,
    path: Any,
    offsets: Any,
    ends: Any,
    progress: Any,
    slice_size: int,
) -> int:
    """Go on with the runs from ``starts``; 0 when all are over, or a negative code.

    Args:
        search: per state the stamp of the last search and the parent in it, and a queue.
        config: strategy, lookahead (-1: unlimited), most steps, most states of a search.
        path: all runs' states; those of run r end before ``offsets[r + 1]``.
    """
    progress[SEEN] = 0
    while progress[RUN] < starts.shape[0]:
        r = progress[RUN]
        if progress[HERE] < 0:
            if progress[LENGTH] == path.shape[0]:
                return NO_PATH
            progress[FROM] = progress[LENGTH]
            path[progress[LENGTH]] = starts[r]
            progress[LENGTH] += 1
            progress[HERE] = starts[r]
            progress[RANDOM] = seeds[r]
            progress[CARE] = starts[r]
            progress[POWER] = 1
            progress[LAPS] = 0
            progress[ROUND] = progress[ESCAPES] = progress[WANDER] = 0
        result = _extend(graph, search, config, path, progress)
        if result < -1:
            return result + 100
        if result >= 0:
            ends[r] = result
            offsets[r + 1] = progress[LENGTH]
            progress[RUN] = r + 1
            progress[HERE] = -1
        if progress[SEEN] > slice_size:
            return MORE
    return 0
