"""What `safetest_gym.bench.speed` measures of our own: exploring, stepping, deciding."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import Facts
from safetest_gym.bench.policies import open_bundled
from safetest_gym.bench.timing import peak_megabytes, stopwatch
from safetest_gym.replacing import replace_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetest_gym.deciders.base import Decider
    from safetest_gym.deciders.space import Order
    from safetest_gym.task import Task

__all__ = [
    "STARTS",
    "bulk",
    "choose_alone",
    "decision_rate",
    "explore",
    "listed_files",
    "published_files",
    "queries",
    "safe_set",
    "step_many",
    "step_one",
    "walk",
]

STARTS = 1_000
"""Start states of the models that are explored."""
PASSES = 5
"""How often start states are decided, where there is time."""

Parameters = dict[str, Any]


def listed_files(name: str, parameters: Parameters, folder: Path) -> tuple[Path, Path]:
    """The task as JANI files with a list of start states, made once.

    Storm needs them one by one; all start states of the line would be millions.
    """
    import numpy as np

    place = folder / "models"
    task, generator, _ = open_bundled(name, parameters)
    model, properties = (place / f"{generator.name}{end}" for end in (".jani", ".props.jani"))
    if properties.exists():
        return model, properties
    starts = np.unique(task.initial.sample(STARTS, np.random.default_rng(0)), axis=0)
    values = [
        {"variables": [{"var": key, "value": v} for key, v in task.as_dict(state).items()]}
        for state in starts
    ]
    planning = generator.properties()[0]
    planning["expression"]["start"] = {"op": "states-values", "values": values}
    place.mkdir(parents=True, exist_ok=True)
    model.write_text(json.dumps(generator.model()), encoding="utf-8")
    text = json.dumps({"properties": [planning]})
    replace_file(properties, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    return model, properties


def published_files() -> tuple[Path, Path] | None:
    """The published line with its own 1000 start states, where the shared models are there."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "models" / "planning"
    model = folder / "one_way_line_15_10_det.jani"
    return (model, model.with_suffix(".props.jani")) if model.exists() else None


def _small() -> Task:
    """A task of a few states, to load what every work needs."""
    task, _, _ = open_bundled("LayeredFamily", {"layers": 3})
    return task


def explore(model: Path, properties: Path) -> Facts:
    """Explore from the listed start states, edge by edge."""
    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    Explorer(_small(), starts="all", mode="edge").run()
    task = load_task(model, properties, action_mode="edge")
    explorer = Explorer(task, starts="all", mode="edge")
    with stopwatch() as watch:
        explorer.run()
    states = explorer.counts().states
    return {"states": states, "seconds": watch.seconds, "peak_mb": peak_megabytes()}


def bulk(model: Path, properties: Path, rounds: int) -> Facts:
    """All outcomes of ten thousand states, many states in one call."""
    import numpy as np

    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    task = load_task(model, properties)
    explorer = Explorer(task, starts="all")
    explorer.run(10_000)
    states = np.ascontiguousarray(explorer.states[:10_000])
    task.engine.expand(states)  # loads the kernel
    with stopwatch() as watch:
        outcomes = sum(len(task.engine.expand(states).states) for _ in range(rounds))
    return {"rate": outcomes / watch.seconds}


def safe_set(model: Path, properties: Path) -> Facts:
    """Build the whole graph and find its safe states."""
    from safetest_gym.deciders.graph import build_graph
    from safetest_gym.task import load_task

    build_graph(_small(), starts="default")
    task = load_task(model, properties)
    with stopwatch() as watch:
        graph = build_graph(task)
        safe = int(graph.safe.sum())
    return {
        "states": graph.num_states,
        "safe": safe,
        "seconds": watch.seconds,
        "peak_mb": peak_megabytes(),
    }


def queries(model: Path, properties: Path, algorithm: str, fresh: bool, limit: float) -> Facts:
    """Start states decided per second, see `decision_rate`."""
    from safetest_gym.task import load_task

    return decision_rate(load_task(model, properties), algorithm, fresh=fresh, limit=limit)


def decision_rate(
    task: Task, algorithm: str, *, fresh: bool, limit: float, order: Order | None = None
) -> Facts:
    """Start states decided per CPU second, one after the other, up to a limit of CPU time.

    A fresh cache knows no state; what `otf` learns about the order of actions stays. Of
    several passes over all states the fastest counts; the first one, in which it learns, is
    given as well.
    """
    from safetest_gym.deciders import Budget, make_decider

    starts = task.initial.enumerate(STARTS)
    decider = make_decider(algorithm, task, order=order, budget=Budget(seconds=0.05))
    decider.decide_many(starts[:20])  # loads kernels
    decider.clear()
    decider.budget = Budget(seconds=limit)
    passes = [_decide_all(decider, starts, fresh, limit)]
    while len(passes) < PASSES and sum(facts["seconds"] for facts in passes) < limit / 2:
        if not fresh:
            decider.clear()
        passes.append(_decide_all(decider, starts, fresh, limit))
    return {**max(passes, key=lambda facts: facts["rate"]), "first": passes[0]["rate"]}


def _decide_all(decider: Decider, starts: NDArray[Any], fresh: bool, limit: float) -> Facts:
    done = unknown = 0
    begun = time.process_time()
    if not fresh:
        done, unknown = len(starts), int((decider.decide_many(starts) == 0).sum())
    while done < len(starts) and time.process_time() - begun < limit:
        decider.forget_facts()
        unknown += not decider.decide(starts[done])
        done += 1
    seconds = time.process_time() - begun
    return {"seconds": seconds, "rate": done / seconds, "queries": done, "unknown": unknown}


def step_one(name: str, parameters: Parameters, steps: int, repeats: int) -> Facts:
    """Steps per second of one environment made by ``gym.make``, with masks and resets.

    Choosing the actions is measured alone in the same loop, and taken off.
    """
    import gymnasium as gym

    env: Any = gym.make(f"safetest/{name}-v0", **parameters)
    rates = []
    for repeat in range(repeats):
        rng = random.Random(repeat)
        numbers = [rng.random() for _ in range(steps)]
        env.reset(seed=repeat)
        masks: list[bytes] = []
        full = walk(env, numbers, masks)
        rates.append(steps / (full - choose_alone(masks, numbers)))
    return {"rate": max(rates)}


def walk(env: Any, numbers: list[float], masks: list[bytes]) -> float:
    """Seconds of a random walk; remembers the masks it has seen."""
    step, reset = env.step, env.reset
    _, info = reset()
    before = time.process_time()
    for number in numbers:
        mask = info["action_mask"].tobytes()
        masks.append(mask)
        _, _, terminated, truncated, info = step(_pick(mask, number))
        if terminated or truncated:
            _, info = reset()
    return time.process_time() - before


def choose_alone(masks: list[bytes], numbers: list[float]) -> float:
    """Seconds of the same loop without an environment."""
    before = time.process_time()
    again: list[bytes] = []
    for mask, number in zip(masks, numbers, strict=True):
        again.append(mask)
        _pick(mask, number)
    return time.process_time() - before


_CHOICES: dict[bytes, list[int]] = {}


def _pick(mask: bytes, number: float) -> int:
    """One of the actions that the mask allows."""
    allowed = _CHOICES.get(mask)
    if allowed is None:
        allowed = _CHOICES[mask] = [action for action, on in enumerate(mask) if on]
    return allowed[int(number * len(allowed))]


def step_many(name: str, parameters: Parameters, rounds: int, passes: int) -> Facts:
    """Steps per CPU second of 1024 copies in one native vector environment.

    Resets, observations, rewards and masks included; choosing the actions is not. "rate" is
    the best pass of ``rounds`` steps, "overall" all of them together: start states are drawn
    many at a time, so that most passes do not see the cost of it.
    """
    import gymnasium as gym
    import numpy as np

    copies = 1024
    envs: Any = gym.make_vec(f"safetest/{name}-v0", num_envs=copies, **parameters)
    rng = np.random.default_rng(0)
    with stopwatch() as starting:
        _, infos = envs.reset(seed=0)
    rates = []
    for number in range(passes + 1):
        seconds = 0.0
        for _ in range(rounds):
            mask = infos["action_mask"]
            actions = ((1 - rng.random(mask.shape, dtype=np.float32)) * mask).argmax(axis=1)
            before = time.process_time()
            _, _, _, _, infos = envs.step(actions)
            seconds += time.process_time() - before
        if number:  # in the first one kernels are loaded
            rates.append(copies * rounds / seconds)
    return {
        "rate": max(rates),
        "overall": passes / sum(1 / rate for rate in rates),
        "first_reset": starting.seconds,
    }
