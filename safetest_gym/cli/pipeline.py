"""``safetest-gym test``: the whole pipeline with a summary."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.faults import AnalysisOptions, run_test
from safetest_gym.cli.reporting import print_json, print_table
from safetest_gym.cli.testing import exit_if_found

if TYPE_CHECKING:
    from safetest_gym.campaign.executors import Executor
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["pipeline"]


@dataclass(frozen=True, kw_only=True)
class _Options(AnalysisOptions):
    starts: Annotated[
        int, typer.Option(min=0, help="Start states to evaluate the policy on; 0 to skip it.")
    ] = 100


@takes(_Options)
def pipeline(options: _Options) -> None:
    """Fuzz, tell avoidable from unavoidable, name every fault, evaluate."""
    begun = time.process_time()
    task, policy = options.open_judged()
    loaded = time.process_time() - begun
    with options.open_executor() as executor:
        tally = run_test(options, task, policy, executor)
        result: dict[str, Any] = {**tally.as_dict(), "loading_seconds": round(loaded, 3)}
        if options.starts:
            result |= _evaluated(options, task, policy, executor)
    if options.as_json:
        print_json({**result, "found": [fault.as_dict(task) for fault in tally.faults]})
    else:
        print_table(task.name, result)
    exit_if_found(options.check, result["unsafe_runs"] > 0 or result.get("unsafe_rate", 0) > 0)


def _evaluated(options: _Options, task: Task, policy: Policy, executor: Executor) -> dict[str, Any]:
    from safetest_gym.policies.evaluation import EvaluationConfig, evaluate

    begun = time.monotonic()
    config = EvaluationConfig(seed=options.seed, max_states=200_000)
    found = evaluate(policy, task, options.starts, 10, config=config, executor=executor)
    return {
        "goal_rate": round(found.goal_rate.value, 4),
        "unsafe_rate": round(found.unsafe_rate.value, 4),
        "evaluation_seconds": round(time.monotonic() - begun, 3),
    }
