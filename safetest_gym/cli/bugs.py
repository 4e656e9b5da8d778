"""``safetest-gym bugs``: test states from a pool, and what oracles say about them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.failure import require_failure
from safetest_gym.cli.reporting import print_json, print_table
from safetest_gym.cli.testing import TestOptions, exit_if_found, progress_bar
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.faults import BugReport, Objective, Oracle
    from safetest_gym.fuzzing import Operator, TestState
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["bugs"]


@dataclass(frozen=True, kw_only=True)
class _Options(TestOptions):
    oracle: Annotated[
        Literal["decider", "lookahead", "improvement", "undo", "perfect"],
        typer.Option(help="What confirms bugs; decider is for safety, improvement for cost."),
    ] = "decider"
    objective: Annotated[
        Literal["safety", "goal", "cost", "probability", "reward"],
        typer.Option(help="What the policy is tested for."),
    ] = "safety"
    depth: Annotated[int, typer.Option(min=1, help="Of the lookahead oracle.")] = 2
    pool: Annotated[int, typer.Option(min=1, help="Test states to generate.")] = 200
    walk: Annotated[int, typer.Option(min=1, help="Longest random walk.")] = 5
    novelty: Annotated[
        int, typer.Option(min=0, max=3, help="Largest new combination required; 0: any state.")
    ] = 0
    bias: Annotated[
        Literal["none", "quality", "plan_length", "detour", "loopiness"],
        typer.Option(help="Which way walks prefer."),
    ] = "none"
    operator: Annotated[
        Literal["forward", "backward", "perturb", "perturb-reached"],
        typer.Option(
            help="Steps of a walk: actions, back from goals, other values for variables, or "
            "other values that going forward has found."
        ),
    ] = "forward"
    starts: Annotated[int, typer.Option(min=1, help="Start states the pool begins with.")] = 20
    limit: Annotated[int, typer.Option(min=1, help="States an oracle may explore.")] = 200_000


@takes(_Options)
def bugs(options: _Options) -> None:
    """Generate test states by pool fuzzing and confirm bugs among them."""
    task, policy = options.open()
    _require_objective(options.objective, task)
    from safetest_gym.faults import bug_regions
    from safetest_gym.fuzzing import PoolConfig, PoolFuzzer

    oracle = _oracle(options, task, policy)
    begun = time.process_time()
    config = PoolConfig(
        size=options.pool,
        walk=options.walk,
        novelty=options.novelty,
        bias=options.bias,
        starts=min(options.starts, options.pool),
        seed=options.seed,
    )
    with progress_bar(options.pool) as advance:
        fuzzer = PoolFuzzer(task, policy, config, operator=_operator(options.operator, task))
        pool = fuzzer.run(progress=lambda size: advance(size, "test states"))
    fuzzed = time.process_time()
    found = _confirm(oracle, pool)
    regions = bug_regions(task, _states(task, found))
    gaps = [report.gap for report in found if math.isfinite(report.gap)]
    result = {
        "test_states": len(pool),
        "bugs": len(found),
        "bug_regions": len(set(regions.tolist())),
        "largest_finite_gap": max(gaps, default=0.0),
        "infinite_gaps": len(found) - len(gaps),
        "fuzzing_seconds": round(fuzzed - begun, 3),
        "oracle_seconds": round(time.process_time() - fuzzed, 3),
    }
    if options.as_json:
        print_json({**result, "found": [_as_dict(report, task) for report in found]})
    else:
        for report in found:
            print(_describe(report, task))
        print_table(task.name, result)
    exit_if_found(options.check, bool(found))


def _require_objective(name: str, task: Task) -> None:
    """Refuse to test for what the task says nothing of."""
    if name == "safety":
        require_failure(task)
    elif name != "reward" and task.property.goal is None:
        raise ConfigError(f"{task.name} has no goal; give --properties, --property or --goal")


def _confirm(oracle: Oracle, pool: list[TestState]) -> list[BugReport]:
    from safetest_gym.faults import UndoOracle

    found = []
    with progress_bar(len(pool)) as advance:
        for number, entry in enumerate(pool):
            if isinstance(oracle, UndoOracle):
                origin = pool[entry.parent].state if entry.parent >= 0 else None
                report = oracle.confirm(entry.state, origin)
            else:
                report = oracle.confirm(entry.state)
            if report is not None:
                found.append(report)
            advance(number + 1, f"{len(found)} bugs")
    return found


def _oracle(options: _Options, task: Task, policy: Policy) -> Oracle:
    from safetest_gym import faults as f
    from safetest_gym.deciders import Budget, make_decider

    objective = _objective(options.objective, task)
    if options.oracle == "decider":
        if options.objective != "safety":
            raise typer.BadParameter("the decider tells about safety only", param_hint="--oracle")
        decider = make_decider("otf", task, budget=Budget(states=options.limit))
        return f.DeciderOracle(task, policy, decider, limit=options.limit)
    if options.oracle == "lookahead":
        return f.LookaheadOracle(task, policy, objective, depth=options.depth, limit=options.limit)
    if options.oracle == "undo":
        return f.UndoOracle(task, policy, objective, limit=options.limit)
    if options.oracle == "improvement":
        if not isinstance(objective, f.StepCost):
            raise typer.BadParameter("improvement is for --objective cost", param_hint="--oracle")
        return f.ImprovementOracle(task, policy, objective, limit=options.limit)
    return f.PerfectOracle(task, policy, objective, limit=options.limit)


def _operator(name: str, task: Task) -> Operator:
    from safetest_gym.fuzzing import Backward, Forward, Perturb, Reached

    if name == "forward":
        return Forward(task)
    if name == "perturb":
        return Perturb(task)
    reached = Reached(task)
    return Backward(reached) if name == "backward" else Perturb(task, reached=reached)


def _objective(name: str, task: Task) -> Objective:
    from safetest_gym import faults as f

    if name == "cost":
        return f.StepCost(task)
    kinds: dict[str, Callable[[], Objective]] = {
        "safety": f.Safety,
        "goal": f.GoalReaching,
        "probability": f.GoalProbability,
        "reward": f.DiscountedReward,
    }
    return kinds[name]()


def _states(task: Task, found: list[BugReport]) -> Any:
    import numpy as np

    return np.array([report.state for report in found], task.dtype).reshape(-1, task.num_variables)


def _describe(report: BugReport, task: Task) -> str:
    values = ", ".join(f"{name}={value}" for name, value in task.as_dict(report.state).items())
    return (
        f"{values}: {report.objective} {report.policy:g}, {report.reachable:g} is possible: "
        f"{report.reason}"
    )


def _as_dict(report: BugReport, task: Task) -> dict[str, Any]:
    def finite(value: float | None) -> float | None:
        return None if value is None or math.isinf(value) else value

    return {
        "state": task.as_dict(report.state),
        "oracle": report.oracle,
        "objective": report.objective,
        "policy": finite(report.policy),
        "reachable": finite(report.reachable),
        "gap": finite(report.gap),
        "normalized": finite(report.normalized),
        "reason": report.reason,
    }
