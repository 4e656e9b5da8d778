"""``safetest-gym evaluate``: how good and how safe a policy is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.failure import require_failure
from safetest_gym.cli.reporting import print_json
from safetest_gym.cli.testing import ExecutorOptions, TestOptions, exit_if_found, open_policy

if TYPE_CHECKING:
    from safetest_gym.policies import Evaluation

__all__ = ["MaxStates", "RunsPerStart", "Starts", "evaluate", "print_evaluations"]

Starts = Annotated[int, typer.Option(min=1, help="Start states to draw; all if there are no more.")]
RunsPerStart = Annotated[int, typer.Option("--runs", min=1, help="Sampled runs per start state.")]
MaxStates = Annotated[
    int, typer.Option(min=0, help="States to exhaust for %Unsafe; 0 only samples.")
]


@dataclass(frozen=True, kw_only=True)
class _Options(ExecutorOptions, TestOptions):
    starts: Starts = 1000
    runs: RunsPerStart = 100
    step_limit: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of a sampled run.", show_default="the task's"),
    ] = None
    max_states: MaxStates = 2_000_000


@takes(_Options)
def evaluate(options: _Options) -> None:
    """%Goal by sampling, %Unsafe by exhaustion where that is possible."""
    subject = options.open_subject()
    if options.check:
        require_failure(subject.task)
    from safetest_gym.policies.evaluation import EvaluationConfig
    from safetest_gym.policies.evaluation import evaluate as measure

    policy = open_policy(options.policy, subject.task)
    config = EvaluationConfig(
        step_limit=options.step_limit or subject.step_limit,
        max_states=options.max_states,
        seed=options.seed,
    )
    with options.open_executor() as executor:
        result = measure(
            policy, subject.task, options.starts, options.runs, config=config, executor=executor
        )
    if options.as_json:
        print_json({"task": subject.task.name, **result.as_json()})
    else:
        print_evaluations(subject.task.name, {str(options.policy): result})
    exit_if_found(options.check, bool(result.unsafe.any()))


def print_evaluations(title: str, evaluations: dict[str, Evaluation]) -> None:
    """One column per policy, one row per way that runs end."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in evaluations:
        table.add_column(name, justify="right", overflow="fold")
    columns = [_cells(found) for found in evaluations.values()]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    Console(markup=False, highlight=False).print(table)


def _cells(found: Evaluation) -> dict[str, str]:
    from safetest_gym.policies.runs import ENDS

    exact, starts = int(found.exact.sum()), len(found.starts)
    if exact == starts:
        how = "all"
    else:
        how = f"{exact:,}, others at least" if exact else "none: sampled, at least"
    return {
        "starts": f"{starts:,}{' (all there are)' if found.all_starts else ''}",
        "runs": f"{int(found.counts.sum()):,}",
        "steps a run": f"{found.mean_steps:.1f}",
        **{f"runs ending: {end}": str(found.end_rate(end)) for end in ENDS},
        "starts that can fail": str(found.unsafe_rate),
        "starts never at goal": str(found.never_arrives_rate),
        "starts exhausted": how,
        "states exhausted": f"{found.num_states:,}",
    }
