"""How fast every algorithm decides states of every bundled task, beside otf.

Run from the checkout: ``python -m tests.benchmarks.speed_algorithms [TASK]... [--out FILE]``.
Queries are start states and states on random walks from them; each is asked with a fresh
cache, while the order of actions that otf has learnt stays; the first pass is for learning.
The tasks have their default sizes, except where that says nothing (`SIZES`).
"""

from __future__ import annotations

import math
from time import process_time
from typing import Any

from tests.benchmarks.harness import Facts, Report, Runner, Work, main

OTHERS = ("ipi", "npi", "tarjan", "propu", "vi", "lrtdp", "lao")
QUERIES = 200
PASSES = 5
"""Each query counts with its fastest pass, as other work disturbs short times."""
MOST_STATES = 200_000
"""A query that needs more states is not decided."""
MOST_SECONDS = 6.0
"""Time per algorithm and task; what was not asked by then counts as not decided."""

SIZES: dict[str, dict[str, Any]] = {
    "LayeredFamily": {"layers": 1000},
    "OuterLoop": {"size": 200},
    "FlappyBird": {"width": 40},
}


def _task(name: str) -> Any:
    from safetest_gym.envs.tasks import make_generator
    from safetest_gym.task import load_task

    generator = make_generator(name, SIZES.get(name, {}))
    failure = "layer < 0" if name == "LayeredFamily" else None
    return load_task(generator.model(), {"properties": generator.properties()}, failure=failure)


def _states(task: Any) -> Any:
    """Starts and states on random walks, by turns."""
    import numpy as np

    rng = np.random.default_rng(1)
    now = task.initial.sample(QUERIES // 6, rng)
    found = [now]
    while sum(map(len, found)) < QUERIES:
        applicable = task.applicable_many(now) & (task.classify(now) == 0)[:, None]
        now = now[applicable.any(axis=1)]
        if not len(now):
            break
        scores = np.where(applicable[applicable.any(axis=1)], rng.random(applicable.shape[1]), -1)
        for _ in range(3):
            now = task.step_many(now, scores.argmax(axis=1), rng)
            applicable = task.applicable_many(now) & (task.classify(now) == 0)[:, None]
            now, applicable = now[applicable.any(axis=1)], applicable[applicable.any(axis=1)]
            scores = np.where(applicable, rng.random(applicable.shape), -1)
        found.append(now)
    states = np.concatenate(found)[:QUERIES]
    return states[(task.classify(states) == 0)]


def decide(*, task: str, algorithm: str) -> Facts:
    """Decide the task's queries one after the other; verdicts and CPU seconds of each."""
    from safetest_gym.deciders import Budget, make_decider

    model = _task(task)
    states = _states(model)
    decider = make_decider(algorithm, model, budget=Budget(states=1))
    decider.decide_many(states[:20])  # loads kernels
    decider.clear()
    decider.budget = Budget(states=MOST_STATES, seconds=MOST_SECONDS)
    verdicts: list[int] = []
    seconds: list[float] = []
    begun = process_time()
    for pass_ in range(PASSES):
        for number, state in enumerate(states):
            if process_time() - begun > MOST_SECONDS:
                break
            before = process_time()
            decider.forget_facts()
            verdict = int(decider.decide(state))
            spent = process_time() - before
            if pass_ == 0:
                verdicts.append(verdict)
                seconds.append(spent)
            seconds[number] = spent if pass_ <= 1 else min(seconds[number], spent)
    return {"verdicts": verdicts, "seconds": seconds, "queries": len(states)}


def _compare(name: str, runner: Runner, report: Report) -> None:
    """One row per algorithm, over the queries that both it and otf decided."""
    ours = runner.run("decide", task=name, algorithm="otf")
    assert ours is not None
    decided = sum(map(bool, ours["verdicts"]))
    report.facts[f"{name} otf"] = ours
    report.add(
        f"{name}: otf",
        f"{decided} of {ours['queries']} in {sum(ours['seconds']):.3f} s, "
        f"{ours['verdicts'].count(1)} safe",
    )
    for algorithm in OTHERS:
        theirs = runner.run("decide", task=name, algorithm=algorithm)
        assert theirs is not None
        report.facts[f"{name} {algorithm}"] = theirs
        spent = [0.0, 0.0]
        both = 0
        for mine, yours, a, b in zip(
            ours["verdicts"],
            theirs["verdicts"],
            ours["seconds"],
            theirs["seconds"],
            strict=False,
        ):
            if mine and yours:
                assert mine == yours, f"{name}: otf and {algorithm} disagree"
                both += 1
                spent[0] += a
                spent[1] += b
        report.add(
            f"{name}: otf beside {algorithm}",
            f"{spent[0]:.4f} s, {spent[1]:.4f} s for {both} decided by both",
            ratio=spent[1] / spent[0] if both else math.inf,
            target=0.9,
        )


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    from safetest_gym.envs.tasks import TASKS

    report = Report("algorithms on bundled tasks, fresh cache per query")
    for name in TASKS:
        if not wanted or name in wanted:
            _compare(name, runner, report)
    return report


WORKS: dict[str, Work] = {"decide": decide}

if __name__ == "__main__":
    main("tests.benchmarks.speed_algorithms", WORKS, _plan)
