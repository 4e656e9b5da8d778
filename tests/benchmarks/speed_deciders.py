"""How fast states are decided, beside Storm in the same run.

Run from the checkout:
``python -m tests.benchmarks.speed_deciders [queries|algorithms|whole|layers|flappy]...``
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from safetest_gym.bench.speed_work import decision_rate
from safetest_gym.bench.timing import peak_megabytes, stopwatch
from tests.benchmarks.harness import SHARED, Facts, Report, Runner, Work, main
from tests.benchmarks.storm_safety import safe_set_with_storm

LINE = SHARED / "models" / "planning" / "one_way_line_15_10_det.jani"
FERRY = Path(__file__).resolve().parents[1] / "data" / "ferry.jani"
ALGORITHMS = ("otf", "ipi", "npi", "tarjan", "propu", "vi", "lrtdp", "lao")
SAFE = 16_231
LAYERS = (50_000, 100_000, 200_000)
FLAPPY = (8, 16, 32, 64, 128, 256)
FLAPPY_SECONDS = 10.0


def _line() -> Any:
    from safetest_gym.task import load_task

    return load_task(LINE, LINE.with_suffix(".props.jani"))


def queries(*, algorithm: str, fresh: bool, order: Any = None, cap_seconds: float = 10.0) -> Facts:
    """Decide the line's start states, see `decision_rate`."""
    return decision_rate(_line(), algorithm, fresh=fresh, limit=cap_seconds, order=order)


def whole() -> Facts:
    """Build the line's whole graph and find its safe set."""
    from safetest_gym.deciders.graph import build_graph
    from safetest_gym.task import load_task

    task = _line()
    assert build_graph(load_task(FERRY), starts="default").safe.all()  # loads kernels
    with stopwatch() as watch:
        graph = build_graph(task)
        safe = int(graph.safe.sum())
    return {
        "seconds": watch.seconds,
        "states": graph.num_states,
        "safe": safe,
        "peak_mb": peak_megabytes(),
    }


def layers(*, algorithm: str, layers: int) -> Facts:
    """Decide the layered family's start."""
    from safetest_gym.deciders import Verdict, make_decider
    from safetest_gym.envs.tasks.families import LayeredFamily
    from safetest_gym.task import load_task

    def solve(count: int) -> float:
        family = LayeredFamily(layers=count)
        task = load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")
        decider = make_decider(algorithm, task)
        with stopwatch() as watch:
            assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.SAFE
        return watch.seconds

    solve(3)  # loads kernels
    return {"seconds": min(solve(layers) for _ in range(3))}


def flappy(*, algorithm: str, width: int) -> Facts:
    """Decide FlappyBird's first start state, which is safe ([S] Fig. 2, right)."""
    from safetest_gym.deciders import Budget, make_decider
    from safetest_gym.envs.tasks import make_generator
    from safetest_gym.task import load_task

    generator = make_generator("FlappyBird", {"width": width})
    task = load_task(generator.model(), {"properties": generator.properties()})
    start = task.initial.enumerate(1_000_000)[0]
    decider = make_decider(algorithm, task, budget=Budget(seconds=0.05))
    decider.decide(start)  # loads kernels
    decider.clear()
    decider.budget = Budget(seconds=FLAPPY_SECONDS)
    with stopwatch() as watch:
        verdict = decider.decide(start)
    return {"seconds": watch.seconds, "verdict": verdict.name}


def _measure_queries(runner: Runner, report: Report) -> None:
    for fresh, target, order in ((True, 5000, None), (False, 9000, None), (True, 5000, "app")):
        name = "fresh cache" if fresh else "shared cache"
        name += f", order {order}" if order else ""
        facts = runner.run("queries", algorithm="otf", fresh=fresh, order=order)
        assert facts is not None
        report.facts[name] = facts
        report.add(
            f"line: otf, {name}",
            f"{facts['rate']:.0f} queries/s ({facts['first']:.0f} in the first pass)",
            ratio=facts["rate"] / target,
            target=1,
        )


def _measure_algorithms(runner: Runner, report: Report) -> None:
    ours = runner.run("queries", algorithm="otf", fresh=True)
    assert ours is not None
    for algorithm in ALGORITHMS[1:]:
        try:
            facts = runner.run("queries", algorithm=algorithm, fresh=True)
        except RuntimeError as error:
            report.add(f"line: {algorithm}", str(error).splitlines()[-1])
            continue
        if facts is None:
            report.add(f"line: {algorithm}", f"not within {runner.cap_seconds:g} s", ratio=math.inf)
            continue
        report.facts[algorithm] = facts
        left = f", {facts['unknown']} unknown" if facts["unknown"] else ""
        report.add(
            f"line: otf beside {algorithm}",
            f"{ours['rate']:.0f} and {facts['rate']:.1f} queries/s{left}",
            ratio=ours["rate"] / facts["rate"],
            target=5 if algorithm == "ipi" else 0.9,
        )


def _measure_whole(runner: Runner, report: Report) -> None:
    ours = runner.run("whole")
    storm = runner.run("storm", model=str(LINE), properties=str(LINE.with_suffix(".props.jani")))
    if ours is None or storm is None:
        raise RuntimeError("the line was not decided within the cap")
    if (ours["safe"], storm["safe"]) != (SAFE, SAFE):
        raise RuntimeError(f"safe states differ: {ours['safe']}, Storm {storm['safe']}")
    report.facts["whole"] = {"ours": ours, "storm": storm}
    report.add(
        "line: whole safe set",
        f"{ours['seconds']:.3f} s, Storm {storm['seconds']:.3f} s",
        ratio=storm["seconds"] / ours["seconds"],
        target=3,
    )


def _measure_layers(runner: Runner, report: Report) -> None:
    for algorithm in ("otf", "ipi"):
        times = []
        for count in LAYERS:
            facts = runner.run("layers", algorithm=algorithm, layers=count)
            times.append(math.inf if facts is None else facts["seconds"])
        report.facts[f"layers {algorithm}"] = times
        growth = max(after / before for before, after in pairwise(times))
        text = ", ".join(f"{d:,}: {t:.3f} s" for d, t in zip(LAYERS, times, strict=True))
        report.add(f"layers: {algorithm}", text, ratio=2.3 / growth, target=1)
    times = []
    for count in (14, 16, 18):
        facts = runner.run("layers", algorithm="tarjan", layers=count)
        times.append(math.inf if facts is None else facts["seconds"])
    report.facts["layers tarjan"] = times
    report.add("layers: tarjan", ", ".join(f"{t:.4f} s" for t in times) + " for 14, 16, 18")


def _measure_flappy(runner: Runner, report: Report) -> None:
    for algorithm in ("otf", "ipi", "tarjan"):
        shown = []
        for width in FLAPPY:
            facts = runner.run("flappy", algorithm=algorithm, width=width)
            assert facts is not None
            report.facts[f"flappy {algorithm} {width}"] = facts
            shown.append(f"{width}: {facts['seconds']:.4f} s {facts['verdict']}")
            if facts["verdict"] == "UNKNOWN":
                break
        report.add(f"flappy: {algorithm}", ", ".join(shown))


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("deciders")
    parts = {
        "queries": _measure_queries,
        "algorithms": _measure_algorithms,
        "whole": _measure_whole,
        "layers": _measure_layers,
        "flappy": _measure_flappy,
    }
    for name, measure in parts.items():
        if not wanted or name in wanted:
            measure(runner, report)
    return report


WORKS: dict[str, Work] = {
    "queries": queries,
    "whole": whole,
    "layers": layers,
    "flappy": flappy,
    "storm": safe_set_with_storm,
}

if __name__ == "__main__":
    main("tests.benchmarks.speed_deciders", WORKS, _plan)
