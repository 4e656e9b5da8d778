"""How fast the engine explores, compiles and steps, beside Storm in the same run.

Run from the checkout: ``python -m tests.benchmarks.speed_engine [line|qvbs|compile|bulk]...``
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from safetest_gym.bench.timing import peak_megabytes, stopwatch
from tests.benchmarks.harness import SHARED, Facts, Report, Runner, main
from tests.benchmarks.storm import explore_with_storm

PLANNING = SHARED / "models" / "planning"
FERRY = Path(__file__).resolve().parents[1] / "data" / "ferry.jani"
LEAST_STATES = 20_000
"""Smaller state spaces measure the start-up."""
BULK_MILLIONS = 20
"""Outcomes per second that computing in bulk should reach."""


def explore(
    *,
    model: str,
    properties: str | None = None,
    constants: dict[str, Any] | None = None,
    starts: Any = "default",
) -> Facts:
    """Explore with our engine, edge by edge."""
    _warm_up()
    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    with stopwatch() as loading:
        task = load_task(model, properties, constants=constants, action_mode="edge")
        explorer = Explorer(task, starts=starts, mode="edge")
    with stopwatch() as exploring:
        explorer.run()
    counts = explorer.counts()
    return {
        "states": counts.states,
        "choices": counts.choices,
        "transitions": counts.transitions,
        "load": loading.seconds,
        "explore": exploring.seconds,
        "peak_mb": peak_megabytes(),
    }


def compile_model(*, model: str, properties: str) -> Facts:
    """Load a model and compile it; imports have happened before."""
    _warm_up()
    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    with stopwatch() as compiling:
        Explorer(load_task(model, properties))
    return {"compile": compiling.seconds}


def expand_in_bulk(*, model: str, properties: str, batch: int, rounds: int) -> Facts:
    """Compute all outcomes of reachable states, many states in one call."""
    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    task = load_task(model, properties)
    explorer = Explorer(task, starts="all")
    explorer.run(batch)
    states = np.ascontiguousarray(explorer.states[:batch])
    task.engine.expand(states)  # loads the kernel
    outcomes = 0
    with stopwatch() as watch:
        for _ in range(rounds):
            outcomes += len(task.engine.expand(states).states)
    return {"outcomes": outcomes, "seconds": watch.seconds, "states": len(states)}


def step_in_bulk(*, model: str, properties: str, batch: int, rounds: int) -> Facts:
    """Step sampled start states at random, many states in one call."""
    from safetest_gym.task import load_task

    task = load_task(model, properties)
    rng = np.random.default_rng(0)
    states = task.initial.sample(batch, rng)
    steps = 0
    seconds = 0.0
    for turn in range(rounds + 1):
        applicable = task.applicable_many(states)
        live = applicable.any(axis=1)
        states, applicable = states[live], applicable[live]
        actions = np.argmax(rng.random(applicable.shape) * applicable, axis=1)
        with stopwatch() as watch:
            states = task.step_many(states, actions, rng)
        if turn > 0:  # the first call loads the kernel
            steps += len(states)
            seconds += watch.seconds
    return {"steps": steps, "seconds": seconds}


def _warm_up() -> None:
    """Load what every exploration needs: imports and the kernels' machine code."""
    from safetest_gym.engine.explore import Explorer
    from safetest_gym.task import load_task

    Explorer(load_task(FERRY), starts="default", mode="edge").run()


def _measure_line(runner: Runner, report: Report) -> None:
    line = PLANNING / "one_way_line_15_10_det.jani"
    where: dict[str, Any] = {"model": str(line), "properties": str(line.with_suffix(".props.jani"))}
    ours = runner.run("explore", starts="all", **where)
    storm = runner.run("storm", **where)
    report.facts["line"] = {"ours": ours, "storm": storm}
    if ours is None or storm is None:
        raise RuntimeError("the line was not explored within the cap")
    if ours["states"] != storm["states"] - 1:  # Storm begins in a state of its own
        raise RuntimeError(f"state counts differ: {ours['states']}, Storm {storm['states'] - 1}")
    report.add(
        "line: exploration",
        f"{ours['explore']:.3f} s, Storm {storm['explore']:.3f} s",
        ratio=storm["explore"] / ours["explore"],
        target=5,
    )
    report.add(
        "line: with loading",
        f"{_total(ours):.3f} s, Storm {_total(storm):.3f} s",
        ratio=_total(storm) / _total(ours),
    )
    report.add(
        "line: memory",
        f"{ours['peak_mb']:.0f} MB, Storm {storm['peak_mb']:.0f} MB",
        ratio=storm["peak_mb"] / ours["peak_mb"],
        target=1,
    )


def _measure_qvbs(runner: Runner, report: Report) -> None:
    models = SHARED / "models"
    cases = json.loads((models / "qvbs_cases.json").read_text(encoding="utf-8"))
    ratios: list[float] = []
    loaded_ratios: list[float] = []
    facts: list[dict[str, Any]] = []
    for case in cases:
        if case["states"] < LEAST_STATES:
            continue
        where = {"model": str(models / case["file"]), "constants": case["constants"]}
        ours, storm = runner.run("explore", **where), runner.run("storm", **where)
        facts.append({**where, "ours": ours, "storm": storm})
        name = f"{case['file'].removeprefix('qvbs/')} {case['constants'] or ''}"
        if ours is None or storm is None:
            late = "ours" if ours is None else "Storm"
            report.add(name, f"{late} did not end within {runner.cap_seconds:g} s")
            continue
        if ours["states"] != case["states"]:
            raise RuntimeError(f"{name}: {ours['states']} states instead of {case['states']}")
        ratios.append(storm["explore"] / ours["explore"])
        loaded_ratios.append(_total(storm) / _total(ours))
        text = f"{ours['explore']:.3f} s, Storm {storm['explore']:.3f} s, {case['states']:,} states"
        report.add(name, text, ratio=ratios[-1])
    report.facts["qvbs"] = facts
    cases_text = f"median of {len(ratios)} cases"
    report.add("QVBS: exploration", cases_text, ratio=statistics.median(ratios), target=2)
    report.add("QVBS: with loading", cases_text, ratio=statistics.median(loaded_ratios))


def _measure_compilation(runner: Runner, report: Report) -> None:
    beluga = PLANNING / "beluga_4_2.jani"
    where: dict[str, Any] = {
        "model": str(beluga),
        "properties": str(beluga.with_suffix(".props.jani")),
    }
    with tempfile.TemporaryDirectory() as cache:
        for name, target in (("cold", 0.3), ("from the disk cache", 0.1)):
            facts = runner.run("compile", environment={"XDG_CACHE_HOME": cache}, **where)
            report.facts[f"compile {name}"] = facts
            if facts is None:
                raise RuntimeError("the model was not compiled within the cap")
            seconds = facts["compile"]
            text = f"{seconds:.3f} s, at most {target} s"
            report.add(f"Beluga {name}", text, ratio=target / seconds, target=1)


def _measure_bulk(runner: Runner, report: Report) -> None:
    line = PLANNING / "one_way_line_15_10_det.jani"
    where: dict[str, Any] = {"model": str(line), "properties": str(line.with_suffix(".props.jani"))}
    expanded = runner.run("expand", batch=10_000, rounds=500, **where)
    stepped = runner.run("step", batch=1_000_000, rounds=5, **where)
    report.facts["bulk"] = {"expanded": expanded, "stepped": stepped}
    if expanded is None or stepped is None:
        raise RuntimeError("the bulk work did not end within the cap")
    rate = expanded["outcomes"] / expanded["seconds"] / 1e6
    report.add(
        "line: outcomes in bulk",
        f"{rate:.1f} million/s, at least {BULK_MILLIONS}",
        ratio=rate / BULK_MILLIONS,
        target=1,
    )
    rate = stepped["steps"] / stepped["seconds"] / 1e6
    report.add("line: vectors stepped in bulk", f"{rate:.1f} million/s")


def _total(facts: Facts) -> float:
    seconds: float = facts["load"] + facts["explore"]
    return seconds


_PARTS = {
    "line": _measure_line,
    "qvbs": _measure_qvbs,
    "compile": _measure_compilation,
    "bulk": _measure_bulk,
}


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("engine")
    for name, measure in _PARTS.items():
        if not wanted or name in wanted:
            measure(runner, report)
    return report


if __name__ == "__main__":
    main(
        "tests.benchmarks.speed_engine",
        {
            "explore": explore,
            "storm": explore_with_storm,
            "compile": compile_model,
            "expand": expand_in_bulk,
            "step": step_in_bulk,
        },
        _plan,
    )
