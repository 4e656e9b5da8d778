"""Options and output that the testing commands share."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import typer

from safetest_gym.cli.failure import FailureText, require_failure
from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    open_subject,
)
from safetest_gym.cli.policy_origin import note_other_task
from safetest_gym.cli.reporting import Exit
from safetest_gym.cli.subject import Subject

if TYPE_CHECKING:
    from safetest_gym.campaign.executors import Executor
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = [
    "Check",
    "ExecutorOptions",
    "FuzzOptions",
    "Mode",
    "PolicyFile",
    "Seed",
    "TestOptions",
    "exit_if_found",
    "open_policy",
    "policy_version",
    "progress_bar",
    "read_lookahead",
    "read_radius",
]

PolicyFile = Annotated[
    Path,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Policy: .zip (Stable-Baselines3), .nnet, .jani2nnet, .pt, .json, .ubj or .npz.",
        show_default=False,
    ),
]


Mode = Annotated[
    Literal["label", "edge"],
    typer.Option(help="What an action is: a label with all its enabled edges, or an edge."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Same seed, same result.")]
Check = Annotated[
    bool, typer.Option("--check", help="Exit with code 1 if something bad was found.")
]


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """What every command that tests a policy takes."""

    __test__ = False  # not for pytest

    model: ModelFile
    policy: PolicyFile
    constants: Constants = None
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    failure: FailureText = None
    goal: Annotated[
        str | None, typer.Option(metavar="FILE|TEXT", help="Goal instead of the property's.")
    ] = None
    start: Annotated[
        str | None,
        typer.Option(metavar="FILE|TEXT", help="Start states instead of the property's."),
    ] = None
    mode: Mode = "label"
    seed: Seed = 0
    check: Check = False
    as_json: AsJson = False

    def open_subject(self) -> Subject:
        """The task, and what is known of it as an environment."""
        conditions = {"failure": self.failure, "goal": self.goal, "start": self.start}
        given = self.model, self.properties, self.choice, self.constants
        return open_subject(*given, self.mode, conditions)

    def open(self) -> tuple[Task, Policy]:
        """The task, and the policy bound to it."""
        task = self.open_subject().task
        return task, open_policy(self.policy, task)

    def open_judged(self) -> tuple[Task, Policy]:
        """The same, of a task that says what failing is."""
        task = self.open_subject().task
        require_failure(task)
        return task, open_policy(self.policy, task)


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """What every command takes that can share its work."""

    executor: Annotated[
        Literal["serial", "processes", "ray"],
        typer.Option(help="Where the work is done; the result is the same."),
    ] = "serial"
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Jobs at a time.", show_default="one per processor"),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(help="Ray cluster to join, HOST:PORT or auto.", show_default="start one here"),
    ] = None

    @contextmanager
    def open_executor(self) -> Iterator[Executor]:
        """The executor, while inside; lost workers are told of in the end."""
        from safetest_gym.campaign.executors import make_executor

        with make_executor(self.executor, workers=self.workers, address=self.address) as executor:
            yield executor
        if executor.lost:
            print(f"{executor.lost} workers were lost; their work was done again", file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class FuzzOptions(ExecutorOptions, TestOptions):
    """What every command that runs policies towards failing states takes."""

    strategy: Annotated[
        Literal["uniform", "greedy", "weighted"],
        typer.Option(help="How runs are driven towards failing states."),
    ] = "greedy"
    lookahead: Annotated[
        str | None,
        typer.Option(
            metavar="N|inf", help="Layers a search looks ahead; default inf, 1 for uniform."
        ),
    ] = None
    runs: Annotated[int, typer.Option(min=0, help="Number of runs.")] = 1000
    max_steps: Annotated[int, typer.Option(min=0, help="Actions after which a run ends.")] = 10_000

    @property
    def layers(self) -> float:
        """The lookahead as a number."""
        return read_lookahead(self.lookahead, self.strategy)


class _Advance(Protocol):
    def __call__(self, done: int, text: str, /) -> None: ...


def open_policy(path: Path, task: Task) -> Policy:
    """Load the policy for the task; note if it was made for another one."""
    from safetest_gym.policies import load_policy

    policy = load_policy(path, task)
    note_other_task(path, task)
    return policy


def policy_version(path: Path) -> str:
    """A name for what the file holds now."""
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def read_lookahead(text: str | None, strategy: str) -> float:
    """``inf`` or a number."""
    if text is None:
        return 1 if strategy == "uniform" else math.inf
    if text == "inf":
        return math.inf
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"expected 1, 2, … or inf, got {text!r}", param_hint="--lookahead")


def read_radius(text: str) -> float:
    """``inf`` or a number from 0."""
    if text == "inf":
        return math.inf
    if text.isdecimal():
        return int(text)
    raise typer.BadParameter(f"expected 0, 1, … or inf, got {text!r}", param_hint="--radius")


def exit_if_found(check: bool, found: bool) -> None:
    """End with `Exit.FOUND` if that was asked for."""
    if check and found:
        raise typer.Exit(Exit.FOUND)


@contextmanager
def progress_bar(total: int) -> Iterator[_Advance]:
    """A bar on standard error while inside, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    console = Console(stderr=True)
    bar = Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        Elapsed(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )

    def advance(done: int, text: str, /) -> None:
        bar.update(row, completed=done, text=text)

    with bar:
        row = bar.add_task("", total=total, text="")
        yield advance
