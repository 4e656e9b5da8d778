"""[C] Table 1 for our tasks: %Unsafe and %Goal before and after the debugging loop.

The input ensemble (20 trees of depth 5) imitates a network that PPO trained for a while; its
last layer is repaired as well. Penalty trees get the faults that the loop with ``leaves``
found, as in [C]. Run from the checkout as ``python -m tests.benchmarks.repair_table --keep
FILE [--quick] [--markdown] [ROW …]``; what FILE has is not done again, and a cell that was
killed goes on from the folder beside it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetest_gym.campaign.debugging import DebugConfig, debug_policy
from safetest_gym.campaign.debugging_starts import split_starts
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.deciders import Budget
from safetest_gym.faults.store import FaultStore
from safetest_gym.policies import EvaluationConfig, Policy, distil, evaluate, load_policy
from safetest_gym.policies import save_policy as save
from safetest_gym.repair.repair import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet
from safetest_gym.task import Task, load_task
from tests.benchmarks.harness import ROOT, Facts, Report, Runner, main

TEACHER_STEPS = 100_000
_CAP = 1800.0
LINES = ("det", "icy", "icy_park")


@dataclass(frozen=True, slots=True)
class Row:
    """A task by its bundled name and parameters, and the row whose teacher it takes."""

    bundled: str
    parameters: dict[str, Any]
    teacher: str = ""


def _rows() -> dict[str, Row]:
    rows = {}
    for name in ("OneWayLine", "TwoWayLine"):
        for variant in LINES:
            for packages in (15, 17):
                parameters = {"packages": packages, "locations": 10, "variant": variant}
                # More packages change no variable but its bounds: the same network fits.
                teacher = f"{name}-{variant}-15"
                rows[f"{name}-{variant}-{packages}"] = Row(name, parameters, teacher)
    rows["Beluga-3"] = Row("Beluga", {"jigs": 3})
    rows["Beluga-4"] = Row("Beluga", {"jigs": 4})
    rows["Blocksworld-8"] = Row("Blocksworld", {"blocks": 8})
    for name in ("Transport", "BouncingBall", "InvertedPendulum", "FollowCar"):
        rows[name] = Row(name, {})
    return rows


ROWS = _rows()
METHODS = ("leaves", "penalty-trees", "last-layer")


def teacher(row: str, steps: int, folder: str) -> Facts:
    """Train the network that the ensembles imitate."""
    chosen = ROWS[row]
    constants = [f"{key}={value}" for key, value in chosen.parameters.items()]
    command = [sys.executable, "-c", "from safetest_gym.cli.app import main; main()", "train"]
    out = Path(folder) / row / "teacher"
    command += [chosen.bundled, *(["--const", *constants] if constants else [])]
    command += ["--steps", str(steps), "--out", str(out)]
    begun = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return {"file": str(out / "best.zip"), "seconds": time.monotonic() - begun}


def _task(row: str) -> tuple[Task, int]:
    from safetest_gym.envs import bundled

    generator: Any
    generator, _ = bundled.split_arguments(ROWS[row].bundled, dict(ROWS[row].parameters))
    task = load_task(generator.model(), {"properties": generator.properties()})
    return task, 1000


def _config(method: Any, quick: bool, step_limit: int) -> DebugConfig:
    size = 1_000 if quick else 10_000
    return DebugConfig(
        repair=RepairOptions(method=method, time_limit=5 if quick else 20, gap=0.02),
        test=TestPlan(runs=size, max_steps=step_limit, decider_states=2_000_000),
        debugging_starts=size,
        evaluation_starts=200 if quick else 1_000,
        runs_per_start=5,
        evaluation=EvaluationConfig(step_limit=step_limit, max_states=1_000_000),
        iterations=20 if quick else 40,
        seconds=60 if quick else 150,
        visited=500,
        verify_budget=Budget(seconds=30 if quick else 60, megabytes=1500),
    )


def _input(task: Task, network: Policy, trees: bool, file: Path) -> Policy:
    """The network itself, or the ensemble that imitates it, made once."""
    if not trees:
        return network
    if not file.exists():
        student = distil(network, task, runs=1000, trees=20, depth=5, dagger_rounds=1)
        file.parent.mkdir(parents=True, exist_ok=True)
        save(student, file)
    return load_policy(file, task)


def repaired(row: str, method: Any, quick: bool, folder: str, file: str) -> Facts:
    """One cell: the loop with this method; `penalty-trees` after `leaves` only."""
    task, limit = _task(row)
    place = Path(folder) / row
    policy = _input(task, load_policy(file, task), method != "last-layer", place / "input.json")
    config = _config((method, "finetune") if method == "last-layer" else method, quick, limit)
    if method == "penalty-trees":
        return _penalised(task, policy, config, place / "leaves")
    result = debug_policy(task, policy, config=config, directory=place / str(method))
    first, last = result.iterations[0], result.iterations[-1]
    repairs = [row.repair for row in result.iterations if row.repair]
    asked = [row.verification["verdict"] for row in result.iterations if row.verification]
    return {
        "input": [first.unsafe_rate, first.goal_rate],
        "output": [last.unsafe_rate, last.goal_rate],
        "exact": first.exact and last.exact,
        "disjoint": result.starts["disjoint"],
        "faults": last.faults_total,
        "open": last.faults_open,
        "trees": repairs[-1]["trees_added"] if repairs else 0,
        "used": repairs[-1]["method"] if repairs else "",
        "repairs": len(repairs),
        "verification": asked[-1] if asked else "",
        "end": result.end,
        "seconds": sum(sum(row.seconds.values()) for row in result.iterations),
    }


def _penalised(task: Task, policy: Policy, config: DebugConfig, folder: Path) -> Facts:
    starts = split_starts(task, config.debugging_starts, config.evaluation_starts, 0)
    with FaultStore(folder / "faults.db") as store:
        faults = FaultSet.of(task, [entry.fault for entry in store.faults(task)])
    begun = time.monotonic()
    after, report = repair(policy, faults, method="penalty-trees")
    seconds = time.monotonic() - begun
    found = evaluate(
        after, task, starts.evaluation, config.runs_per_start, config=config.evaluation
    )
    return {
        "output": [found.unsafe_rate.value, found.goal_rate.value],
        "exact": bool(found.exact.all()),
        "faults": len(faults),
        "open": int((~report.fixed).sum()),
        "trees": report.trees_added,
        "seconds": seconds,
    }


def plan_of(quick: bool, folder: Path) -> Callable[[Runner, frozenset[str]], Report]:
    """All cells of the wanted rows; a cell that fails or takes too long is left empty."""

    def plan(runner: Runner, wanted: frozenset[str]) -> Report:
        report = Report("repair of imitated policies")
        runner = replace(runner, cap_seconds=_CAP)
        steps = TEACHER_STEPS // 4 if quick else TEACHER_STEPS
        for name, row in ROWS.items():
            if wanted and name not in wanted:
                continue
            trained = runner.run(
                "teacher", row=row.teacher or name, steps=steps, folder=str(folder)
            )
            if trained is None:
                report.add(name, "the teacher's training did not end in time")
                continue
            cells: dict[str, Facts | None] = {}
            for method in METHODS:
                if method == "penalty-trees" and cells["leaves"] is None:
                    cells[method] = None
                    continue
                cells[method] = runner.run(
                    "repaired",
                    row=name,
                    method=method,
                    quick=quick,
                    folder=str(folder),
                    file=trained["file"],
                )
                report.add(f"{name} {method}", _shown(cells[method]))
            report.facts[name] = cells
        return report

    return plan


def _shown(facts: Facts | None) -> str:
    if facts is None:
        return "did not end in time"
    before = f"unsafe {_pair(facts['input'])} -> " if "input" in facts else "unsafe "
    return (
        f"{before}{_pair(facts['output'])} (goal), {facts['faults']} faults, "
        f"{facts['trees']} trees added, {facts.get('end', '')} {facts['seconds']:.0f} s"
    )


def _pair(rates: list[float]) -> str:
    return f"{100 * rates[0]:.1f} % ({100 * rates[1]:.1f} %)"


def markdown(facts: dict[str, dict[str, Facts | None]]) -> str:
    """The table for a document; %Unsafe and %Goal side by side."""
    head = (
        "task", "input", "leaves", "penalty trees", "network", "last layer", "faults",
        "trees", "repairs", "outcome", "seconds",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for name, cells in facts.items():
        leaves, penalty, layer = (cells[method] for method in METHODS)
        own = leaves or {}
        shown = [
            f"{name}{'' if own.get('disjoint', True) else ' *'}",
            _rates(leaves, "input"),
            _rates(leaves, "output"),
            _rates(penalty, "output"),
            _rates(layer, "input"),
            _rates(layer, "output")
            + (" (finetune)" if (layer or {}).get("used") == "finetune" else ""),
            str(own.get("faults", "")),
            str(own.get("trees", "")),
            str(own.get("repairs", "")),
            f"{own.get('end', '')} {own.get('verification', '')}".strip(),
            f"{own['seconds']:.0f}" if own else "",
        ]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _rates(facts: Facts | None, which: str) -> str:
    if facts is None:
        return "—"
    least = "" if facts["exact"] else "≥ "
    unsafe, goal = (100 * rate for rate in facts[which])
    return f"{least}{unsafe:.1f} / {goal:.1f}"


if __name__ == "__main__":
    _quick, _markdown = ("--quick" in sys.argv), ("--markdown" in sys.argv)
    sys.argv = [word for word in sys.argv if word not in ("--quick", "--markdown")]
    _kept = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else ""
    _base = Path(_kept).resolve().parent if _kept else Path(tempfile.gettempdir())
    _folder = _base / f"repair-table{'-quick' if _quick else ''}"
    _plan = plan_of(_quick, _folder)

    def _and_show(runner: Runner, wanted: frozenset[str]) -> Report:
        report = _plan(runner, wanted)
        if _markdown:
            print(markdown(report.facts))
        return report

    main("tests.benchmarks.repair_table", {"teacher": teacher, "repaired": repaired}, _and_show)
