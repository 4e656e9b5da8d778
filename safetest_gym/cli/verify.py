"""``safetest-gym verify``: does the policy have an unsafe run at all?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.options import check_output
from safetest_gym.cli.reporting import Exit, print_error, print_json, print_table
from safetest_gym.cli.testing import TestOptions, exit_if_found, progress_bar

if TYPE_CHECKING:
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task
    from safetest_gym.verify import Progress, Verification

__all__ = ["VerifyOptions", "verify"]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(TestOptions):
    """What `verify` takes."""

    method: Annotated[
        Literal["auto", "explicit", "abstract"],
        typer.Option(help="List the reachable states, or cover them by boxes."),
    ] = "auto"
    max_states: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="States or boxes before giving up.")
    ] = None
    memory: Annotated[
        float, typer.Option(metavar="MB", min=1, help="Megabytes before giving up.")
    ] = 4000
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", min=0.001, help="Seconds before giving up.")
    ] = None
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the proof of SAFE: .npz.")
    ] = None
    run: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the run of UNSAFE: .json.")
    ] = None
    check_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Check this proof on the slow interpreter, verify nothing."
        ),
    ] = None
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Check so many states only, which proves nothing."),
    ] = None


@takes(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Prove a policy safe from all start states, or find a run that fails."""
    check_output("--certificate", options.certificate)
    check_output("--run", options.run)
    task, policy = options.open_judged()
    if options.check_certificate is not None:
        _check(options, task, policy, options.check_certificate)
        return
    if options.sample is not None:
        raise typer.BadParameter("goes with --check-certificate", param_hint="--sample")
    found = _verify(options, task, policy)
    result = _result(task, found)
    if options.certificate is not None and found.proof is not None:
        found.proof.save(options.certificate)
    if options.run is not None and found.run is not None:
        _write_run(task, found, options.run)
    if options.as_json:
        print_json(result)
    else:
        print_table(f"{task.name}, {options.policy.name}", result)
    if found.verdict.name == "UNKNOWN":
        print_error(found.reason)
        raise typer.Exit(Exit.LIMIT)
    exit_if_found(options.check, found.verdict.name == "UNSAFE")


def _verify(options: VerifyOptions, task: Task, policy: Policy) -> Verification:
    from safetest_gym import verify as verifying

    budget = verifying.Budget(
        states=options.max_states, megabytes=options.memory, seconds=options.time_limit
    )
    with progress_bar(0) as advance:

        def report(progress: Progress) -> None:
            starts = f"{progress.starts:,} starts, " if progress.starts else ""
            attempt = f"round {progress.round}, " if progress.round > 1 else ""
            advance(progress.expanded, f"{attempt}{starts}{progress.known:,} reached")

        return verifying.verify(policy, task, method=options.method, budget=budget, report=report)


def _check(options: VerifyOptions, task: Task, policy: Policy, path: Path) -> None:
    from safetest_gym.verify import CertificateError, check_proof, load_proof

    proof = load_proof(path)
    total = len(proof) if options.sample is None else min(len(proof), options.sample)
    result: dict[str, Any] = {"valid": True, "reason": "", "size": len(proof), "checked": total}
    with progress_bar(total) as advance:

        def report(done: int) -> None:
            advance(done, "checked")

        try:
            check_proof(
                task, policy, proof, sample=options.sample, seed=options.seed, report=report
            )
        except CertificateError as error:
            result |= {"valid": False, "reason": str(error)}
    if options.as_json:
        print_json(result)
    else:
        print_table(f"{path.name} for {task.name}, {options.policy.name}", result)
    if not result["valid"]:
        print_error(result["reason"])
        raise typer.Exit(Exit.FOUND)


def _result(task: Task, found: Verification) -> dict[str, Any]:
    return {
        "verdict": found.verdict.name,
        "method": found.method,
        "reason": found.reason,
        "proof": 0 if found.proof is None else len(found.proof),
        "run": None if found.run is None else [task.actions[a] for a in found.run.actions],
        **found.statistics,
    }


def _write_run(task: Task, found: Verification, path: Path) -> None:
    import json

    assert found.run is not None
    text = json.dumps(found.run.as_json(task), ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
