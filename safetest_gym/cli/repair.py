"""``safetest-gym repair``: find a policy's faults and repair them, until nothing is left."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.failure import require_failure
from safetest_gym.cli.remembering import remember_task
from safetest_gym.cli.reporting import print_json
from safetest_gym.cli.testing import FuzzOptions, exit_if_found, open_policy, progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetest_gym.campaign.debugging import DebugConfig, DebugResult
    from safetest_gym.campaign.debugging_log import Iteration
    from safetest_gym.policies import Policy
    from safetest_gym.repair.repairing import RepairOptions

__all__ = ["repair"]

Method = Literal["leaves", "penalty-trees", "last-layer", "finetune"]
_CLEAN = ("no-fault", "proof")


@dataclass(frozen=True, kw_only=True)
class _Options(FuzzOptions):
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Keeps everything; goes on after a kill."),
    ]
    method: Annotated[
        Method | None,
        typer.Option(
            help="How to repair.", show_default="leaves for trees, last-layer for networks"
        ),
    ] = None
    fallback: Annotated[
        Method | None,
        typer.Option(
            help="Where the method cannot fix all faults.",
            show_default="finetune for networks without --method, else none",
        ),
    ] = None
    variant: Annotated[
        Literal["strong", "weak"],
        typer.Option(help="A safe action must win, or any that is not known to be bad."),
    ] = "strong"
    solver: Annotated[
        Literal["auto", "gurobi", "highs"], typer.Option(help="For linear programs.")
    ] = "auto"
    runs: Annotated[int, typer.Option(min=1, help="Runs to test every policy with.")] = 10_000
    exhaust: Annotated[
        int,
        typer.Option(
            min=0, help="After the runs, states the policy can visit that are searched for faults."
        ),
    ] = 20_000
    iterations: Annotated[int, typer.Option(min=0, help="Repairs at most.")] = 20
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="After this no further repair begins.")
    ] = None
    repair_work: Annotated[
        float,
        typer.Option(min=0.001, help="Improves a repair; about seconds, but counted in steps."),
    ] = 5.0
    decider_states: Annotated[
        int, typer.Option(min=1, help="States the decider may know; then runs stay unresolved.")
    ] = 1_000_000
    keep: Annotated[
        int, typer.Option(min=0, help="Safe decisions on runs to the goal to keep if possible.")
    ] = 500
    verify: Annotated[
        Literal["none", "auto", "explicit", "abstract"],
        typer.Option(help="Ask for a proof when no new fault is found."),
    ] = "auto"
    verify_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, help="Before verification gives up.", show_default="no limit"),
    ] = None
    memory: Annotated[
        float, typer.Option(metavar="MB", min=1, help="Before verification gives up.")
    ] = 1000
    debugging_starts: Annotated[int, typer.Option(min=1, help="Starts to find faults from.")] = (
        10_000
    )
    starts: Annotated[int, typer.Option(min=1, help="Other starts, to judge policies on.")] = 1000
    runs_per_start: Annotated[int, typer.Option(min=1, help="Sampled from each, for %Goal.")] = 10
    max_states: Annotated[
        int, typer.Option(min=0, help="States to exhaust for %Unsafe; 0 only samples.")
    ] = 2_000_000


@takes(_Options)
def repair(options: _Options) -> None:
    """Fuzz, name the faults, repair, until no new fault is found; --out resumes."""
    subject = options.open_subject()
    require_failure(subject.task)
    policy = open_policy(options.policy, subject.task)
    from safetest_gym.campaign.debugging import debug_policy

    with progress_bar(100) as advance, options.open_executor() as executor:
        result = debug_policy(
            subject.task,
            policy,
            config=_config(options, policy, subject.step_limit),
            directory=options.out,
            watch=_Watch(advance, quiet=options.as_json),
            executor=executor,
        )
    remember_task(options.out, options)
    file = _as_zip(options, policy, result)
    if options.as_json:
        print_json(
            {
                "task": subject.task.name,
                "out": str(options.out),
                "policy": str(file),
                "end": result.end,
                "reason": result.reason,
                "starts": result.starts,
                "iterations": [row.as_dict() for row in result.iterations],
            }
        )
    else:
        _print(subject.task.name, result, file)
    exit_if_found(options.check, result.end not in _CLEAN)


def _config(options: _Options, policy: Policy, step_limit: int) -> DebugConfig:
    from safetest_gym.campaign.debugging import DebugConfig
    from safetest_gym.campaign.pipeline import TestPlan
    from safetest_gym.deciders import Budget
    from safetest_gym.policies import EvaluationConfig

    return DebugConfig(
        repair=_repair_options(options, policy),
        test=TestPlan(
            runs=options.runs,
            strategy=options.strategy,
            lookahead=options.layers,
            max_steps=options.max_steps,
            seed=options.seed,
            decider_states=options.decider_states,
        ),
        exhaust=options.exhaust,
        iterations=options.iterations,
        seconds=math.inf if options.seconds is None else options.seconds,
        debugging_starts=options.debugging_starts,
        evaluation_starts=options.starts,
        runs_per_start=options.runs_per_start,
        evaluation=EvaluationConfig(
            step_limit=step_limit, max_states=options.max_states, seed=options.seed
        ),
        keep=options.keep,
        verify=options.verify,
        verify_budget=Budget(seconds=options.verify_seconds, megabytes=options.memory),
    )


def _as_zip(options: _Options, policy: Policy, result: DebugResult) -> Path:
    """The newest policy as the kind of file that was given, as far as loops keep another."""
    if options.policy.suffix != ".zip" or result.iterations[-1].number == 0:
        return result.file
    from safetest_gym.policies import MlpPolicy
    from safetest_gym.policies.sidecar import sidecar_path
    from safetest_gym.repair.sb3_model import write_repaired_zip

    assert isinstance(policy, MlpPolicy), "a zip holds a network"
    assert isinstance(result.policy, MlpPolicy)
    target = options.out / "repaired.zip"
    write_repaired_zip(options.policy, target, policy, result.policy)
    beside = sidecar_path(options.policy)
    if beside.is_file():
        shutil.copyfile(beside, sidecar_path(target))
    return target


def _repair_options(options: _Options, policy: Policy) -> RepairOptions:
    from safetest_gym.campaign.debugging_config import REPAIR_GAP
    from safetest_gym.repair.repairing import RepairOptions, default_methods

    usual = default_methods(policy)
    first = options.method or usual[0]
    if options.fallback is not None:
        methods: tuple[Method, ...] = (first, options.fallback)
    else:
        methods = usual if options.method is None else (first,)
    return RepairOptions(
        method=methods,
        variant=options.variant,
        solver=options.solver,
        work=options.repair_work,
        gap=REPAIR_GAP,
    )


class _Watch:
    """Shows the loop at work: a bar, and a line per repair unless ``quiet``."""

    def __init__(self, advance: Callable[[int, str], None], *, quiet: bool) -> None:
        self._advance, self._quiet = advance, quiet

    def step(self, number: int, name: str, done: float) -> None:
        self._advance(int(100 * done), f"policy {number}: {name}")

    def iteration(self, row: Iteration) -> None:
        if self._quiet:
            return
        text = (
            f"policy {row.number}: unsafe {_percent(row.unsafe_rate)}, goal "
            f"{_percent(row.goal_rate)}; unsafe runs: {row.unsafe_runs}, faults: "
            f"{row.faults_total} ({row.faults_new} new)"
        )
        if row.repair is not None:
            fixed = f"{row.repair['fixed']} of {row.repair['faults']} fixed"
            text += f"; {row.repair['method']}: {fixed}, values changed: {row.repair['changed']}"
            text += f", trees added: {row.repair['trees_added']}" * bool(row.repair["trees_added"])
        print(text, flush=True)


def _print(title: str, result: DebugResult, file: Path) -> None:
    """The input beside the last policy, and why the loop ended."""
    from rich.console import Console
    from rich.table import Table

    first, last = result.iterations[0], result.iterations[-1]
    table = Table(title=title, title_justify="left")
    for name in ("", "before", "after"):
        table.add_column(name, justify="right" if name else "left")
    exact = "starts unsafe" if first.exact and last.exact else "starts unsafe, at least"
    table.add_row(exact, _percent(first.unsafe_rate), _percent(last.unsafe_rate))
    table.add_row("goal reached", _percent(first.goal_rate), _percent(last.goal_rate))
    table.add_row("unsafe runs found", str(first.unsafe_runs), str(last.unsafe_runs))
    table.add_row("known faults not fixed", str(last.faults_total), str(last.faults_open))
    Console(markup=False, highlight=False).print(table)
    print(f"{result.end}: {result.reason}")
    print(f"the repaired policy is {file}" if last.number else "the policy was not changed")


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f} %"
