"""``safetest-gym fuzz``: run a policy and look for failing states."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.options import check_output
from safetest_gym.cli.reporting import print_json, print_table
from safetest_gym.cli.testing import FuzzOptions, exit_if_found, progress_bar

if TYPE_CHECKING:
    from safetest_gym.fuzzing import Runs

__all__ = ["fuzz"]

_MOST_STARTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class _Options(FuzzOptions):
    all_starts: Annotated[
        bool, typer.Option("--all-starts", help="One run from every start state instead.")
    ] = False
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the runs as JSON Lines."),
    ] = None


@takes(_Options)
def fuzz(options: _Options) -> None:
    """Run the policy towards failing states."""
    check_output("--out", options.out)
    task, policy = options.open_judged()
    from safetest_gym.campaign.fuzzing import fuzz as share
    from safetest_gym.fuzzing import Fuzzer

    fuzzer = Fuzzer(
        task,
        policy,
        strategy=options.strategy,
        lookahead=options.layers,
        max_steps=options.max_steps,
        seed=options.seed,
    )
    starts = task.initial.enumerate(_MOST_STARTS) if options.all_starts else None
    total = options.runs if starts is None else len(starts)
    before = time.monotonic()
    with options.open_executor() as executor, progress_bar(total) as advance:

        def tell(done: int, unsafe: int) -> None:
            advance(done, f"{unsafe} unsafe")

        found = share(fuzzer, total if starts is None else starts, executor, progress=tell)
    seconds = time.monotonic() - before
    if options.out is not None:
        _write(options.out, found)
    ends = found.counts()
    result = {"runs": len(found), **ends, "steps": int(found.lengths.sum())}
    if options.as_json:
        print_json({**result, "seconds": round(seconds, 6)})
    else:
        print_table(task.name, {**result, "seconds": f"{seconds:.3f}"})
    exit_if_found(options.check, ends["failing"] > 0)


def _write(path: Path, runs: Runs) -> None:
    with path.open("w", encoding="utf-8") as file:
        for run in runs:
            file.write(json.dumps(run.as_dict(runs.task)) + "\n")
