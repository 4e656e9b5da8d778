"""Where the algorithms differ most: families made for it, and [S] Fig. 2 (right).

Run from the checkout: ``python -m tests.benchmarks.worst_cases [layers|loop|flappy]...``
With ``--curves FILE.csv``: for FlappyBird, the share of safe states decided within a time,
per algorithm, and a picture (.svg) beside it.
"""

from __future__ import annotations

import csv
import math
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

from tests.benchmarks.harness import Facts, Report, Runner, Work, main
from tests.benchmarks.speed_deciders import layers

CURVES = ("otf", "ipi", "npi", "tarjan", "lrtdp", "lao")
WIDTHS = (10, 14, 18, 22, 26, 30)
HEIGHT = 8
STATES = 60
"""Safe states per width."""
QUERY_SECONDS = 8.0
"""On the clock; a busy machine gives a query less."""
WORK_SECONDS = 12.0


def loop(*, algorithm: str, size: int) -> Facts:
    """Decide the outer-loop family's start, which is unsafe."""
    from safetest_gym.deciders import Verdict, make_decider
    from safetest_gym.envs.tasks.families import OuterLoop
    from safetest_gym.task import load_task

    family = OuterLoop(size=size)
    task = load_task(family.model(), {"properties": family.properties()})
    decider = make_decider(algorithm, task)
    verdict = decider.decide(task.initial.enumerate(1)[0])
    assert verdict is Verdict.UNSAFE
    return {"expanded": decider.statistics.expanded, "tried": decider.statistics.tried}


def flappy(*, algorithm: str) -> Facts:
    """CPU seconds for safe states of FlappyBird, fresh caches; null: not in time."""
    import numpy as np

    from safetest_gym.deciders import Budget, Verdict, make_decider
    from safetest_gym.envs.tasks.flappy_bird import FlappyBird
    from safetest_gym.task import load_task

    rng = np.random.default_rng(0)
    seconds: list[float | None] = []
    begun = process_time()
    for width in WIDTHS:
        generator = FlappyBird(width=width, height=HEIGHT)
        task = load_task(generator.model(), {"properties": generator.properties()})
        rows = [(x, y) for x in range(width) for y in range(HEIGHT)]
        states = np.array(rows, task.dtype)
        safe = states[make_decider("otf", task).decide_many(states) == Verdict.SAFE]
        decider = make_decider(algorithm, task, budget=Budget(states=1))
        decider.decide(safe[0])  # loads kernels
        decider.budget = Budget(seconds=QUERY_SECONDS)
        for state in rng.choice(safe, STATES):
            decider.clear()
            before = process_time()
            if before - begun > WORK_SECONDS:
                seconds.append(None)
                continue
            verdict = decider.decide(state)
            assert verdict is not Verdict.UNSAFE
            seconds.append(process_time() - before if verdict else None)
    return {"seconds": seconds}


def _measure_layers(runner: Runner, report: Report) -> None:
    for algorithm in ("otf", "ipi", "npi", "lrtdp"):
        counts = [12_500, 25_000, 50_000, 100_000, 200_000]
        times = _layers_seconds(runner, algorithm, counts)
        growth = max(after / before for before, after in pairwise(times))
        text = ", ".join(f"{d:,}: {t:.3f} s" for d, t in zip(counts, times, strict=True))
        report.add(f"layers: {algorithm}", text, ratio=2.3 / growth, target=1)
        report.facts[f"layers {algorithm}"] = times
    counts = [14, 15, 16, 17, 18]
    times = _layers_seconds(runner, "tarjan", counts)
    growth = (times[-1] / times[0]) ** (1 / (len(times) - 1))
    text = ", ".join(f"{d}: {t:.4f} s" for d, t in zip(counts, times, strict=True))
    report.add("layers: tarjan, growth per layer", f"{text} (the paper: 2)", ratio=growth)
    report.facts["layers tarjan"] = times


def _layers_seconds(runner: Runner, algorithm: str, counts: list[int]) -> list[float]:
    found = [runner.run("layers", algorithm=algorithm, layers=count) for count in counts]
    return [math.inf if facts is None else facts["seconds"] for facts in found]


def _measure_loop(runner: Runner, report: Report) -> None:
    for algorithm in ("otf", "ipi", "npi", "tarjan"):
        sizes = (100, 200, 400)
        found = [runner.run("loop", algorithm=algorithm, size=size) for size in sizes]
        tried = [facts["tried"] for facts in found if facts is not None]
        text = ", ".join(f"{n}: {t:,}" for n, t in zip(sizes, tried, strict=True))
        report.add(f"outer loop: {algorithm}", f"actions tried {text}")
        report.facts[f"loop {algorithm}"] = tried


def _measure_flappy(runner: Runner, report: Report) -> None:
    for algorithm in CURVES:
        facts = runner.run("flappy", algorithm=algorithm)
        seconds = [] if facts is None else facts["seconds"]
        decided = sorted(s for s in seconds if s is not None)
        report.facts[f"flappy {algorithm}"] = seconds
        shown = f"median {decided[len(decided) // 2] * 1e3:.2f} ms" if decided else "none"
        report.add(f"flappy: {algorithm}", f"{len(decided)} of {len(seconds)} decided, {shown}")


def _write_curves(report: Report, path: Path) -> None:
    curves: dict[str, list[float]] = {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["algorithm", "seconds", "share_of_safe_states_decided"])
        for algorithm in CURVES:
            seconds = report.facts[f"flappy {algorithm}"]
            decided = sorted(s for s in seconds if s is not None)
            curves[algorithm] = decided
            for count, spent in enumerate(decided, start=1):
                writer.writerow([algorithm, f"{spent:.6g}", f"{count / len(seconds):.6g}"])
    _draw(curves, len(WIDTHS) * STATES, path.with_suffix(".svg"))


def _draw(curves: dict[str, list[float]], total: int, path: Path) -> None:
    """A plot of [S] Fig. 2 (right): decades of CPU seconds, and the share decided by then."""
    width, height, left, top = 420, 260, 50, 15
    low, high = -5, 1
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

    def x_of(seconds: float) -> float:
        return left + width * (math.log10(max(seconds, 10.0**low)) - low) / (high - low)

    def y_of(share: float) -> float:
        return top + height * (1 - share)

    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>'
    ]
    for decade in range(low, high + 1):
        x = x_of(10.0**decade)
        parts.append(f'<path d="M{x:.1f} {top}V{top + height}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">1e{decade}</text>'
        )
    for tenth in range(0, 11, 2):
        y = y_of(tenth / 10)
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10}</text>')
    for row, ((algorithm, decided), colour) in enumerate(zip(curves.items(), colours, strict=True)):
        line = f"M{left} {y_of(0)}"
        for count, seconds in enumerate(decided, start=1):
            line += f"H{x_of(seconds):.1f}V{y_of(count / total):.1f}"
        parts.append(
            f'<path d="{line}H{left + width}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{left + width + 8}" y="{top + 14 + 18 * row}" fill="{colour}">'
            f"{algorithm}</text>"
        )
    parts.append(
        f'<text x="{left + width / 2}" y="{top + height + 34}" text-anchor="middle">'
        "CPU seconds of a query; share of safe states of FlappyBird decided by then</text>"
    )
    size = f'width="{left + width + 70}" height="{top + height + 45}"'
    body = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
        f"{body}\n</svg>\n",
        encoding="utf-8",
    )


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("worst cases")
    parts: dict[str, Any] = {
        "layers": _measure_layers,
        "loop": _measure_loop,
        "flappy": _measure_flappy,
    }
    for name, measure in parts.items():
        if not wanted or name in wanted:
            measure(runner, report)
    if _CURVES is not None and (not wanted or "flappy" in wanted):
        _write_curves(report, _CURVES)
    return report


def _curves_file() -> Path | None:
    """Take ``--curves FILE`` from the arguments."""
    if "--curves" not in sys.argv:
        return None
    place = sys.argv.index("--curves")
    path = Path(sys.argv[place + 1])
    del sys.argv[place : place + 2]
    return path


WORKS: dict[str, Work] = {"layers": layers, "loop": loop, "flappy": flappy}

_CURVES = _curves_file() if __name__ == "__main__" else None

if __name__ == "__main__":
    main("tests.benchmarks.worst_cases", WORKS, _plan)
