"""Sample runs of a policy and tell apart how they end.

Run j of start i has its own random stream, so results depend neither on threads nor on
whether the policy is native.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import following as k
from safetest_gym.policies.following import Follower
from safetest_gym.policies.policy import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["ENDS", "RunPlan", "Runs", "Visits", "sample_runs", "visits_of_runs"]

ENDS = ("goal", "failing", "dead end", "cycle", "step limit")
"""How runs end. A cycle is certain: states without chance that repeat for ever."""

_CHUNK = 64
_BATCH = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """How many runs per start, how long, from which seed, on how many threads (None: all)."""

    runs: int
    step_limit: int
    seed: int
    threads: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Counts of ends, shape (starts, 5) in the order of `ENDS`, and steps, shape (starts,)."""

    counts: NDArray[np.int64]
    steps: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """States where runs asked the policy, with repetitions.

    Attributes:
        states: vectors, shape (n, V), in the task's dtype.
        applicable: masks, shape (n, A).
        actions: what the policy did, shape (n,).
    """

    states: NDArray[Any]
    applicable: NDArray[np.bool_]
    actions: NDArray[np.int64]


def sample_runs(
    policy: Policy,
    task: Task,
    starts: NDArray[np.int64],
    plan: RunPlan,
    part: range | None = None,
) -> Runs:
    """Run ``policy`` (bound to ``task``) from packed states ``starts``, shape (n, W).

    Args:
        part: of the starts, those to run from, and what the answer is about; by default all.
    """
    counts = np.zeros((len(starts), k.ENDS), dtype=np.int64)
    steps = np.zeros(len(starts), dtype=np.int64)
    wanted = part if part is not None else range(len(starts))
    found = Runs(counts[wanted.start : wanted.stop], steps[wanted.start : wanted.stop])
    if policy.native() is None:
        _run_in_step(Follower(task, policy), starts, plan, wanted, (counts, steps))
        return found
    chunks = range(wanted.start, wanted.stop, _CHUNK)
    threads = min(plan.threads or os.cpu_count() or 1, len(chunks))

    def work(thread: int) -> None:
        follower = Follower(task, policy)
        for first in chunks[thread::threads]:
            rows = slice(first, min(first + _CHUNK, wanted.stop))
            _run_kernel(follower, starts[rows], first, plan, (counts[rows], steps[rows]))

    if threads <= 1:
        if len(chunks):
            work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    return found


def _run_kernel(
    follower: Follower,
    starts: NDArray[np.int64],
    first: int,
    plan: RunPlan,
    out: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    progress, trail = np.zeros(2, dtype=np.int64), follower.new_trails(1)[0]
    while True:
        status = k.runs_kernel(
            follower.block,
            follower.policy,
            starts,
            first,
            plan.runs,
            plan.step_limit,
            plan.seed,
            progress,
            *out,
            trail,
            follower.span,
            follower.doubles,
        )
        if status == 0:
            return
        if status != k.NO_ROWS:
            follower.refuse_here(status)
        follower.grow_rows()


def _run_in_step(
    follower: Follower,
    starts: NDArray[np.int64],
    plan: RunPlan,
    wanted: range,
    out: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """All runs side by side, asking the policy for one batch of actions per step."""
    counts, steps = out
    last = wanted.stop * plan.runs
    for first in range(wanted.start * plan.runs, last, _BATCH):
        size = min(_BATCH, last - first)
        owner = (first + np.arange(size)) // plan.runs
        ends, taken, _ = _batch_of_runs(follower, starts, range(first, first + size), plan)
        np.add.at(counts, (owner, ends), 1)
        np.add.at(steps, owner, taken)


def visits_of_runs(policy: Policy, task: Task, starts: NDArray[np.int64], plan: RunPlan) -> Visits:
    """What `sample_runs` comes by, one entry per step of every run."""
    follower, visits = Follower(task, policy), list[Visits]()
    total = len(starts) * plan.runs
    for first in range(0, total, _BATCH):
        which = range(first, min(first + _BATCH, total))
        visits += _batch_of_runs(follower, starts, which, plan)[2]
    if not visits:
        empty = np.zeros((0, task.num_actions), dtype=np.bool_)
        nothing = np.zeros((0, task.num_variables), dtype=task.dtype)
        return Visits(nothing, empty, np.zeros(0, dtype=np.int64))
    return Visits(
        np.concatenate([part.states for part in visits]).astype(task.dtype, copy=False),
        np.concatenate([part.applicable for part in visits]),
        np.concatenate([part.actions for part in visits]),
    )


def _batch_of_runs(
    follower: Follower, starts: NDArray[np.int64], which: range, plan: RunPlan
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Visits]]:
    """Ends and steps of the runs numbered ``which``, and what they visited, step by step."""
    first, size, visits = which[0], len(which), list[Visits]()
    states = np.zeros((size, starts.shape[1]), dtype=np.int64)
    random, trails = np.zeros(size, dtype=np.int64), follower.new_trails(size)
    k.begin_many_kernel(follower.block, starts, first, plan.runs, plan.seed, states, random, trails)
    ends, taken = np.full(size, k.LIMIT, dtype=np.int64), np.zeros(size, dtype=np.int64)
    running = np.arange(size)
    for step in range(plan.step_limit + 1):
        kinds, masks, vectors = follower.look(states[running])
        ended = kinds != k.RUNNING
        ends[running[ended]] = kinds[ended]
        running, masks, vectors = running[~ended], masks[~ended], vectors[~ended]
        if not len(running) or step == plan.step_limit:
            break
        actions = follower.ask(vectors, masks)
        visits.append(Visits(vectors, masks, actions))
        moved = _move(follower, (states, random, trails), running, actions)
        taken[running] += 1
        ends[running[moved == k.CYCLE]] = k.CYCLE
        running = running[moved == k.RUNNING]
    return ends, taken, visits


def _move(
    follower: Follower,
    runs: tuple[NDArray[np.int64], ...],
    which: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> NDArray[Any]:
    moved = np.full(len(which), -1, dtype=np.int64)
    while True:
        status = k.move_many_kernel(follower.block, *runs, follower.span, which, actions, moved)
        follower.home()
        if status == 0:
            return moved
        if status != k.NO_ROWS:
            follower.refuse(status, runs[0][which[int((moved < 0).argmax())]])
        follower.grow_rows()
