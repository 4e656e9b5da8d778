"""[D] Table 1: pool fuzzing with its switches, and oracles by their recall.

On deterministic tasks: states from which the policy misses the goal though it can be
reached (qualitative bugs), and states from which its way is longer than needed
(quantitative bugs).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import Cell, Experiment, Facts, Findings, Row, Setting, Table
from safetest_gym.bench.figures import BarFigure
from safetest_gym.bench.policies import open_bundled, trained
from safetest_gym.bench.timing import stopwatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from safetest_gym.faults import BugReport
    from safetest_gym.fuzzing import TestState
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["EXPERIMENT", "unique_pairs"]

TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "OneWayLine": ("OneWayLine", {"packages": 3, "locations": 5}),
    "TwoWayLine": ("TwoWayLine", {"packages": 2, "locations": 5}),
    "Rovers": ("Rovers", {}),
    "Transport": ("Transport", {"packages": 3, "locations": 5}),
    "OneWayLine, 5 packages": ("OneWayLine", {"packages": 5, "locations": 6}),
    "TwoWayLine, 3 packages": ("TwoWayLine", {"packages": 3, "locations": 6}),
    "Transport, 5 packages": ("Transport", {"packages": 5, "locations": 6}),
}
"""Tasks without chance; a quick experiment takes the first four."""

QUALITATIVE = ("undo", "lookahead", "perfect")
QUANTITATIVE = ("undo", "lookahead", "improvement", "perfect")
SWITCHES = ((True, True), (False, True), (True, False), (False, False))
"""Quality bias, novelty filter."""

_LIMIT = 200_000
"""States an oracle may explore."""


def _plan(setting: Setting) -> list[Cell]:
    names = list(TASKS)[: 4 if setting.quick else None]
    sizes = {"steps": 200_000, "pool": 50 if setting.quick else 100}
    seeds = range(setting.seed, setting.seed + (1 if setting.quick else 3))
    return [
        {"task": name, "bias": bias, "novelty": novelty, "seed": seed, **sizes}
        for seed in seeds
        for name in names
        for bias, novelty in SWITCHES
    ]


def _measure(cell: Cell, folder: Path) -> Facts:
    import numpy as np

    from safetest_gym.fuzzing import End, Fuzzer, PoolConfig, PoolFuzzer

    name, parameters = TASKS[cell["task"]]
    task, _, _ = open_bundled(name, parameters)
    policy = trained(name, parameters, (cell["steps"], cell["seed"]), folder)
    config = PoolConfig(
        size=cell["pool"],
        bias="quality" if cell["bias"] else "none",
        novelty=2 if cell["novelty"] else 0,
        starts=5,
        max_steps=200,
        walks=20 * cell["pool"],
        seed=cell["seed"],
    )
    with stopwatch() as fuzzing:
        pool = PoolFuzzer(task, policy, config).run()
    states = np.array([entry.state for entry in pool])
    runs = Fuzzer(task, policy, max_steps=1000).run_from(states)
    solved = runs.ends == int(End.GOAL)
    with stopwatch() as asking:
        found = _ask_all(task, policy, pool, solved)
    bugs = np.any([mask for masks in found.values() for mask in masks.values()], axis=0)
    return {
        "states": len(pool),
        "solved": int(solved.sum()),
        "bugs": int(bugs.sum()),
        "regions": _regions(task, states[bugs]),
        "unique": unique_pairs(states[bugs]),
        "qualitative": _counts(found["qualitative"]),
        "quantitative": _counts(found["quantitative"]),
        "fuzzing_seconds": round(fuzzing.seconds, 3),
        "oracle_seconds": round(asking.seconds, 3),
    }


def _ask_all(
    task: Task, policy: Policy, pool: Sequence[TestState], solved: NDArray[np.bool_]
) -> dict[str, dict[str, NDArray[np.bool_]]]:
    """Per kind of bug and oracle, which states are confirmed."""
    from safetest_gym import faults as f

    found: dict[str, dict[str, NDArray[np.bool_]]] = {}
    kinds: tuple[tuple[str, f.Objective, tuple[str, ...], NDArray[np.bool_]], ...] = (
        ("qualitative", f.GoalReaching(), QUALITATIVE, ~solved),
        ("quantitative", f.StepCost(task, "1"), QUANTITATIVE, solved),
    )
    for kind, objective, oracles, wanted in kinds:
        confirmed = {
            oracle: _ask(oracle, (task, policy), objective, pool, wanted) for oracle in oracles
        }
        found[kind] = confirmed
    return found


def _ask(
    oracle: str,
    subject: tuple[Task, Policy],
    objective: Any,
    pool: Sequence[TestState],
    wanted: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which of the wanted states the oracle confirms."""
    import numpy as np

    from safetest_gym import faults as f

    confirmed = np.zeros(len(pool), np.bool_)
    rows = np.flatnonzero(wanted).tolist()
    if not rows:
        return confirmed
    if oracle == "perfect":
        perfect = f.PerfectOracle(*subject, objective, limit=_LIMIT)
        reports = perfect.confirm_all(np.array([pool[row].state for row in rows]))
        confirmed[rows] = [report is not None for report in reports]
        return confirmed
    undo = f.UndoOracle(*subject, objective, limit=_LIMIT)
    asked: dict[str, Callable[[TestState], BugReport | None]] = {
        "undo": lambda entry: undo.confirm(
            entry.state, pool[entry.parent].state if entry.parent >= 0 else None
        ),
        "lookahead": lambda entry: f.LookaheadOracle(*subject, objective, limit=_LIMIT).confirm(
            entry.state
        ),
        "improvement": lambda entry: f.ImprovementOracle(
            *subject, objective, neighbourhood=1_000
        ).confirm(entry.state),
    }
    for row in rows:
        confirmed[row] = asked[oracle](pool[row]) is not None
    return confirmed


def _counts(masks: dict[str, NDArray[np.bool_]]) -> dict[str, int]:
    import numpy as np

    union = np.any(list(masks.values()), axis=0)
    return {**{name: int(mask.sum()) for name, mask in masks.items()}, "any": int(union.sum())}


def _regions(task: Task, bugs: NDArray[Any]) -> int:
    from safetest_gym.faults import bug_regions

    return len(set(bug_regions(task, bugs).tolist()))


def unique_pairs(states: NDArray[Any]) -> int:
    """How many of the states have two values that no other of them has together.

    >>> import numpy as np
    >>> unique_pairs(np.array([[0, 0], [0, 1], [0, 1]]))
    1
    """
    held = [
        {(i, j, row[i], row[j]) for i, j in itertools.combinations(range(len(row)), 2)}
        for row in states.tolist()
    ]
    counts = Counter(pair for pairs in held for pair in pairs)
    return sum(any(counts[pair] == 1 for pair in pairs) for pairs in held)


def _present(rows: Sequence[Row]) -> Findings:
    done = [row for row in rows if row.facts]
    names = list(dict.fromkeys(row.cell["task"] for row in done))
    switched: dict[tuple[bool, bool], str] = dict(
        zip(SWITCHES, ("both on", "bias off", "novelty off", "both off"), strict=True)
    )
    tables = [
        Table("Recall of the oracles, in percent (bias and novelty on)", *_recall(done, names)),
        Table("Switches of the fuzzer", *_switch_table(done, names, switched)),
    ]
    series: dict[str, list[float | None]] = {
        text: [_share(_of(done, name, switch), "bugs", "states") for name in names]
        for switch, text in switched.items()
    }
    figure = BarFigure(
        title="Bugs among pool states", y_name="percent", groups=names, series=series
    )
    notes = []
    if done:
        cell = done[0].cell
        notes.append(
            f"policies: the task's preset, {cell['steps']:,} steps; pools of {cell['pool']} states "
            f"from 5 start states; novelty 2; {len({row.cell['seed'] for row in done})} seed(s)"
        )
    notes.append(
        "recall of qualitative oracles: of the states that the policy does not solve; of "
        "quantitative ones: of those it solves; perfect: of all bugs, by full exploration"
    )
    return Findings(tables=tables, figures={"bugs": figure}, notes=notes)


def _of(rows: Sequence[Row], task: str, switch: tuple[bool, bool]) -> list[Facts]:
    return [
        row.facts
        for row in rows
        if row.facts
        and row.cell["task"] == task
        and (row.cell["bias"], row.cell["novelty"]) == switch
    ]


def _share(facts: Sequence[Facts], part: str, whole: str) -> float | None:
    total = sum(fact[whole] for fact in facts)
    return 100 * sum(fact[part] for fact in facts) / total if total else None


def _recall(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    heads = ["task", "states", "solved"]
    heads += [f"qual. {name}" for name in QUALITATIVE]
    heads += [f"quant. {name}" for name in QUANTITATIVE]
    lines = []
    for name in names:
        facts = _of(rows, name, (True, True))
        states = sum(fact["states"] for fact in facts)
        solved = sum(fact["solved"] for fact in facts)
        line = [name, str(states), str(solved)]
        for kind, oracles, whole in (
            ("qualitative", QUALITATIVE, states - solved),
            ("quantitative", QUANTITATIVE, solved),
        ):
            for oracle in oracles:
                part = sum(fact[kind][oracle] for fact in facts)
                line.append(f"{100 * part / whole:.1f}" if whole else "-")
        lines.append(line)
    return heads, lines


def _switch_table(
    rows: Sequence[Row], names: Sequence[str], switched: dict[tuple[bool, bool], str]
) -> tuple[list[str], list[list[str]]]:
    heads = ["task, switches", "states", "solved", "bugs", "bugs, % of states", "regions"]
    heads += ["bugs with a unique pair, %", "fuzzing, CPU s", "oracles, CPU s"]
    lines = []
    for name in names:
        for switch, text in switched.items():
            facts = _of(rows, name, switch)
            line = [f"{name}, {text}"]
            line += [str(sum(fact[key] for fact in facts)) for key in ("states", "solved", "bugs")]
            share, unique = _share(facts, "bugs", "states"), _share(facts, "unique", "bugs")
            line.append("-" if share is None else f"{share:.1f}")
            line.append(str(sum(fact["regions"] for fact in facts)))
            line.append("-" if unique is None else f"{unique:.1f}")
            for key in ("fuzzing_seconds", "oracle_seconds"):
                line.append(f"{sum(fact[key] for fact in facts):.2f}")
            lines.append(line)
    return heads, lines


EXPERIMENT = Experiment(name="policy_testing", plan=_plan, measure=_measure, present=_present)
