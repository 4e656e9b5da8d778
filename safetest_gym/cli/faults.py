"""``safetest-gym faults``: find the decisions to blame."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.options import check_output
from safetest_gym.cli.reporting import Exit, print_error, print_json, print_table
from safetest_gym.cli.testing import (
    FuzzOptions,
    exit_if_found,
    policy_version,
    progress_bar,
    read_radius,
)

if TYPE_CHECKING:
    from safetest_gym.campaign.executors import Executor
    from safetest_gym.campaign.pipeline import ChunkResult, FaultTest
    from safetest_gym.faults import Fault
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["AnalysisOptions", "Tally", "faults", "run_test"]

_FORMATS = (".jsonl", ".csv", ".json")


@dataclass(frozen=True, kw_only=True)
class AnalysisOptions(FuzzOptions):
    """What fault analysis takes."""

    decider: Annotated[
        str, typer.Option(help="Algorithm that decides whether states are safe.")
    ] = "otf"
    decider_states: Annotated[
        int, typer.Option(min=1, help="States the decider may know; then runs stay unresolved.")
    ] = 1_000_000
    radius: Annotated[
        str,
        typer.Option(metavar="N|inf", help="Deviations from the policy that may make it safe."),
    ] = "inf"
    direction: Annotated[
        Literal["backward", "forward"], typer.Option(help="Order in which a run is analysed.")
    ] = "backward"
    first_only: Annotated[
        bool, typer.Option("--first-only", help="Only the first fault of each run.")
    ] = False
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Keep faults and progress in this file."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class _Options(AnalysisOptions):
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the faults: .jsonl, .csv, or .json for their states as JANI start states.",
        ),
    ] = None


@takes(_Options)
def faults(options: _Options) -> None:
    """Find every fault on unsafe runs; with --store, killed runs go on where they were."""
    check_output("--out", options.out, _FORMATS)
    task, policy = options.open_judged()
    with options.open_executor() as executor:
        tally = run_test(options, task, policy, executor)
    if options.out is not None:
        _write(options.out, task, tally.faults)
    result = tally.as_dict()
    if options.as_json:
        print_json({**result, "found": [fault.as_dict(task) for fault in tally.faults]})
    else:
        print_table(task.name, result)
    exit_if_found(options.check, bool(tally.faults))
    if options.check and result["unresolved"]:
        print_error(
            f"{result['unresolved']} runs are unresolved: the decider's limit ended before the "
            "answer; raise --decider-states"
        )
        raise typer.Exit(Exit.LIMIT)


def _write(path: Path, task: Task, found: list[Fault]) -> None:
    from safetest_gym.faults import write_csv, write_jsonl, write_start_states

    writers = dict(zip(_FORMATS, (write_jsonl, write_csv, write_start_states), strict=True))
    writers[path.suffix](path, task, found)


class Tally:
    """Sums over chunks; every fault once, in the order of the runs."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._known: set[tuple[bytes, int]] = set()
        self._bugs: set[str] = set()
        self.counts: dict[str, int] = {}
        self.seconds = [0.0, 0.0]
        self.wall = 0.0

    def add(self, result: ChunkResult) -> list[Fault]:
        """Take in a chunk; the faults that are new."""
        self._bugs |= result.bugs
        totals = {
            "runs": sum(result.ends.values()),
            "unsafe_runs": result.ends["failing"],
            "unavoidable": result.unavoidable,
            "unresolved": result.unresolved,
            "states_tested": result.tested,
        }
        for name, count in totals.items():
            self.counts[name] = self.counts.get(name, 0) + count
        for stage in (0, 1):
            self.seconds[stage] += result.seconds[stage]
        new = []
        for fault in result.faults:
            key = fault.state.tobytes(), fault.action
            if key not in self._known:
                self._known.add(key)
                new.append(fault)
        self.faults += new
        return new

    def as_dict(self) -> dict[str, Any]:
        """The summary."""
        names = ("runs", "unsafe_runs", "unavoidable", "unresolved", "states_tested")
        counts = {name: self.counts.get(name, 0) for name in names}
        return {
            "runs": counts["runs"],
            "unsafe_runs": counts["unsafe_runs"],
            "bugs": len(self._bugs),
            "faults": len(self.faults),
            "unavoidable": counts["unavoidable"],
            "unresolved": counts["unresolved"],
            "states_tested": counts["states_tested"],
            "fuzzing_seconds": round(self.seconds[0], 3),
            "analysis_seconds": round(self.seconds[1], 3),
            "wall_seconds": round(self.wall, 3),
        }


def run_test(options: AnalysisOptions, task: Task, policy: Policy, executor: Executor) -> Tally:
    """Do all the runs; without --json each new fault is told in words once it is stored."""
    from safetest_gym.campaign.pipeline import FaultTest, TestPlan
    from safetest_gym.faults import FaultStore

    plan = TestPlan(
        runs=options.runs,
        strategy=options.strategy,
        lookahead=options.layers,
        max_steps=options.max_steps,
        seed=options.seed,
        decider=options.decider,
        decider_states=options.decider_states,
        radius=read_radius(options.radius),
        direction=options.direction,
        first_only=options.first_only,
    )
    with nullcontext() if options.store is None else FaultStore(options.store) as store:
        version = policy_version(options.policy)
        test = FaultTest(task, policy, plan, store=store, version=version, executor=executor)
        return _tally(test, quiet=options.as_json)


def _tally(test: FaultTest, *, quiet: bool) -> Tally:
    tally = Tally()
    begun = time.monotonic()
    with progress_bar(test.plan.runs) as advance:
        for result in test:
            for fault in tally.add(result):
                if not quiet:
                    print(fault.describe(test.task), flush=True)
            text = f"{tally.counts['unsafe_runs']} unsafe, {len(tally.faults)} faults"
            advance(tally.counts["runs"], text)
    tally.wall = time.monotonic() - begun
    return tally
