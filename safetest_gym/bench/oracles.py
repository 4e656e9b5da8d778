"""[J] Fig. 3 and [S] Fig. 2, 4, 5: which share of states each algorithm decides in what time.

States come from the unsafe runs of trained policies; each is decided with an empty cache.
All states of a task are given a little CPU time first, then those that are open more, until
the algorithm has used up what it has for the task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import Cell, Experiment, Facts, Findings, Row, Setting, Table
from safetest_gym.bench.figures import LineFigure
from safetest_gym.bench.policies import Subject, failing_subject, note_policies
from safetest_gym.bench.timing import stopwatch
from safetest_gym.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetest_gym.deciders.base import Decider
    from safetest_gym.deciders.space import Order

__all__ = ["EXPERIMENT", "TASKS"]

TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "Beluga": ("Beluga", {"jigs": 4, "racks": 3}),
    "OneWayLine icy": ("OneWayLine", {"packages": 8, "variant": "icy"}),
    "TwoWayLine icy_park": ("TwoWayLine", {"packages": 3, "variant": "icy_park"}),
    "FlappyBird": ("FlappyBird", {}),
    "InvertedPendulum": ("InvertedPendulum", {}),
    "FlappyBird wide": ("FlappyBird", {"width": 200, "height": 20}),
    "OneWayLine icy_park": ("OneWayLine", {"packages": 15, "variant": "icy_park"}),
    "TwoWayLine det": ("TwoWayLine", {"packages": 15}),
    "Blocksworld": ("Blocksworld", {"blocks": 6}),
    "Transport": ("Transport", {}),
    "NPuzzle": ("NPuzzle", {}),
    "BouncingBall": ("BouncingBall", {}),
    "FollowCar": ("FollowCar", {}),
}
"""A quick experiment takes the first five."""


@dataclass(frozen=True, slots=True)
class _Way:
    """An algorithm as it is asked."""

    decider: str
    order: Order | None = None
    radius: float = math.inf


WAYS = {
    "otf": _Way("otf"),
    "otf app": _Way("otf", "app"),
    "iPI app": _Way("ipi"),
    "iPI learn": _Way("ipi", "learn"),
    "iPI rand": _Way("ipi", "rand"),
    "TarjanSafe": _Way("tarjan"),
    "LRTDP": _Way("lrtdp"),
    "LAO*": _Way("lao"),
    "nPI": _Way("npi"),
    "VI": _Way("vi"),
    "Prop-U": _Way("propu"),
    "0-TarjanSafe": _Way("tarjan", radius=0),
    "1-TarjanSafe": _Way("tarjan", radius=1),
    "2-TarjanSafe": _Way("tarjan", radius=2),
    "1-LRTDP": _Way("lrtdp", radius=1),
    "1-otf": _Way("otf", radius=1),
}
_MEGABYTES = 1_000.0
_SAFE, _UNSAFE = 1, 2


def _plan(setting: Setting) -> list[Cell]:
    names = list(TASKS)[: 5 if setting.quick else None]
    sizes: Cell = {"steps": [200_000, 50_000, 20_000], "states": 100}
    sizes |= {"limits": [0.02, 0.2, 2.0], "cap": 20.0}
    if setting.quick:
        sizes = {"steps": [50_000, 20_000], "states": 25, "limits": [0.2], "cap": 5.0}
    return [
        {"task": name, "algorithm": way, "seed": setting.seed, **sizes}
        for name in names
        for way in WAYS
    ]


def _test_states(subject: Subject, cell: Cell) -> NDArray[Any]:
    """States on unsafe runs, or on all runs if none is; neither failing nor goals."""
    import numpy as np

    chosen = list(subject.runs.unsafe()) or list(subject.runs)
    states = np.unique(np.concatenate([run.states for run in chosen]), axis=0)
    states = states[subject.task.classify(states) == 0]
    order = np.random.default_rng(cell["seed"]).permutation(len(states))
    picked: NDArray[Any] = states[np.sort(order[: cell["states"]])]
    return picked


def _measure(cell: Cell, folder: Path) -> Facts:
    from safetest_gym.deciders import Budget, make_decider

    name, parameters = TASKS[cell["task"]]
    subject = failing_subject(name, parameters, (cell["steps"], cell["seed"]), folder)
    states = _test_states(subject, cell)
    way = WAYS[cell["algorithm"]]
    needs_policy = way.radius != math.inf or way.order == "learn"
    decider = make_decider(
        way.decider,
        subject.task,
        policy=subject.policy if needs_policy else None,
        radius=way.radius,
        order=way.order,
        budget=Budget(seconds=0.05, megabytes=_MEGABYTES),
    )
    if len(states):
        decider.decide(states[0])  # loads the kernels
    return {**_ask(decider, states, cell), "steps": subject.steps}


def _ask(decider: Decider, states: NDArray[Any], cell: Cell) -> Facts:
    """Per state the verdict and the CPU seconds of the last attempt.

    ``complete`` is the largest limit that all open states were given; beyond it more might
    be decided.
    """
    seconds, verdicts = [0.0] * len(states), [0] * len(states)
    spent = complete = 0.0
    for limit in cell["limits"]:
        for number, state in enumerate(states):
            if verdicts[number]:
                continue
            if spent >= cell["cap"]:
                break
            took, verdicts[number] = _decide(decider, state, limit)
            seconds[number] = round(took, 7)
            spent += took
        else:
            complete = limit
    return {"seconds": seconds, "verdicts": verdicts, "complete": complete}


def _decide(decider: Decider, state: NDArray[Any], limit: float) -> tuple[float, int]:
    """CPU seconds and verdict of one state; budgets are in seconds of the clock on the wall."""
    from safetest_gym.deciders import Budget

    decider.forget_facts()
    spent, verdict = 0.0, 0
    while not verdict and spent < limit:
        decider.budget = Budget(seconds=limit - spent, megabytes=_MEGABYTES)
        with stopwatch() as watch:
            verdict = int(decider.decide(state))
        spent += watch.seconds
        if decider.statistics.megabytes > 0.95 * _MEGABYTES:
            break
    return spent, verdict


def _truth(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Per task, what algorithms without radius say of the states; 0 where none does.

    Raises:
        EngineError: two of them contradict each other.
    """
    truth: dict[str, list[int]] = {}
    for row in rows:
        if row.facts is None or WAYS[row.cell["algorithm"]].radius != math.inf:
            continue
        said = row.facts["verdicts"]
        known = truth.setdefault(row.cell["task"], [0] * len(said))
        for number, verdict in enumerate(said):
            if known[number] and verdict and known[number] != verdict:
                raise EngineError(f"verdicts of {row.cell['task']} differ at state {number}")
            known[number] = known[number] or verdict
    return truth


def _present(rows: Sequence[Row]) -> Findings:
    truth = _truth(rows)
    tables, figures = [], {}
    for kind, verdict in (("safe", _SAFE), ("unsafe", _UNSAFE)):
        lines = [_line(way, list(_of(rows, truth, way, verdict))) for way in WAYS]
        heads = ["algorithm", "decided, %", "CPU ms, median", "90th percentile", "CPU s in all"]
        sizes = sum(known.count(verdict) for known in truth.values())
        tables.append(Table(f"{sizes} {kind} states of {len(truth)} tasks", heads, lines))
        figures[kind] = _curves(f"{kind.capitalize()} states", rows, truth, verdict)
    for task in truth:
        if task.startswith("FlappyBird"):
            chosen = [row for row in rows if row.cell["task"] == task]
            key = task.lower().replace(" ", "_")
            figures[key] = _curves(f"Safe states of {task}", chosen, truth, _SAFE)
    tables.append(_breakdown(rows, truth))
    return Findings(tables=tables, figures=figures, notes=_notes(rows))


def _of(
    rows: Sequence[Row], truth: dict[str, list[int]], way: str, verdict: int
) -> Iterator[tuple[float, bool]]:
    """Seconds per state that truly has this verdict, and whether the way said so.

    With a finite radius UNSAFE is no proof that a state is not a bug; it counts as decided.
    """
    for row in rows:
        if row.cell["algorithm"] != way or row.facts is None:
            continue
        pairs = zip(row.facts["seconds"], row.facts["verdicts"], strict=True)
        known = truth.get(row.cell["task"], [])
        for (seconds, said), true in zip(pairs, known, strict=True):
            if true == verdict:
                yield seconds, said == verdict


def _line(way: str, found: Sequence[tuple[float, bool]]) -> list[str]:
    times = sorted(seconds for seconds, decided in found if decided)
    if not times:
        return [way, "0.0" if found else "", "", "", _sum(found)]
    share = 100 * len(times) / len(found)
    median, late = times[len(times) // 2], times[min(len(times) - 1, int(0.9 * len(times)))]
    return [way, f"{share:.1f}", f"{1000 * median:.3f}", f"{1000 * late:.3f}", _sum(found)]


def _sum(found: Sequence[tuple[float, bool]]) -> str:
    return f"{math.fsum(seconds for seconds, _ in found):.2f}"


def _curves(
    title: str, rows: Sequence[Row], truth: dict[str, list[int]], verdict: int
) -> LineFigure:
    series: dict[str, list[tuple[float, float]]] = {}
    for way in WAYS:
        found = list(_of(rows, truth, way, verdict))
        times = sorted(max(seconds, 1e-6) for seconds, decided in found if decided)
        line = [(t, 100 * (k + 1) / len(found)) for k, t in enumerate(times)]
        if line:
            limit = max(row.cell["limits"][-1] for row in rows)
            series[way] = [*line, (max(limit, line[-1][0]), line[-1][1])]
    return LineFigure(
        title=f"{title} decided over time",
        x_name="CPU seconds per state, empty cache",
        y_name="percent decided",
        series=series,
        log_x=True,
    )


def _breakdown(rows: Sequence[Row], truth: dict[str, list[int]]) -> Table:
    """Per task: states, and median times of the algorithms that matter most."""
    shown = ("otf", "iPI app", "TarjanSafe", "LRTDP")
    lines = []
    for task, known in truth.items():
        chosen = [row for row in rows if row.cell["task"] == task]
        cells = [task, str(known.count(_SAFE)), str(known.count(_UNSAFE)), str(known.count(0))]
        for way in shown:
            found = [p for v in (_SAFE, _UNSAFE) for p in _of(chosen, truth, way, v)]
            cells.append(" / ".join(_line(way, found)[1:3]) if found else "")
        lines.append(cells)
    heads = ["task", "safe", "unsafe", "open", *(f"{way}: % / ms" for way in shown)]
    return Table("By task", heads, lines)


def _notes(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    cell = rows[0].cell
    limits = ", then ".join(f"{limit:g}" for limit in cell["limits"])
    return [
        note_policies(rows),
        f"at most {cell['states']} states per task, from those unsafe runs",
        "otf: its default order of actions, learnt from the states asked before; the others know "
        "nothing of them",
        f"each state with an empty cache and {_MEGABYTES:,.0f} MB: {limits} CPU seconds for what "
        f"is open, until an algorithm has spent {cell['cap']:g} s on a task; truth is what "
        "algorithms without radius agree on",
        *_cut_short(rows),
        "r-: the approximation with r deviations from the policy; of safe states it can only "
        "prove those that are r-safe",
    ]


def _cut_short(rows: Sequence[Row]) -> list[str]:
    """Where algorithms had no time to try all states for as long as allowed."""
    most = rows[0].cell["limits"][-1]
    cut: dict[str, list[str]] = {}
    for row in rows:
        if row.facts and row.facts["complete"] < most:
            name = f"{row.cell['task']} {row.facts['complete']:g} s"
            cut.setdefault(row.cell["algorithm"], []).append(name)
    if not cut:
        return []
    listed = "; ".join(f"{way}: {', '.join(names)}" for way, names in cut.items())
    return [f"spent before all states had had every limit, so lower bounds from there on: {listed}"]


EXPERIMENT = Experiment(name="oracles", plan=_plan, measure=_measure, present=_present)
