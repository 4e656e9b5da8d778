"""``safetest-gym train``: train a policy, or go on with a run that was stopped."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    open_subject,
)
from safetest_gym.cli.remembering import remember_task
from safetest_gym.cli.reporting import print_json
from safetest_gym.cli.testing import Seed
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.cli.subject import Subject
    from safetest_gym.policies import Evaluation

__all__ = ["interrupts_between_steps", "train"]

_REFRESH_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """Arguments of the command; None where the task's preset decides."""

    model: ModelFile
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the run; the same one continues it."
        ),
    ]
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    constants: Constants = None
    algo: Annotated[
        Literal["maskable-ppo", "maskable-dqn", "ppo", "dqn"] | None,
        typer.Option(help="What to learn with."),
    ] = None
    steps: Annotated[int | None, typer.Option(min=1, help="Environment steps in all.")] = None
    net: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Widths of the hidden layers.")
    ] = None
    seed: Seed = 0
    envs: Annotated[int | None, typer.Option(min=1, help="Copies stepped together.")] = None
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps between evaluations and checkpoints.", show_default="a tenth"
        ),
    ] = None
    env: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments of the environment, over the preset's."),
    ] = None
    learner: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Arguments of the algorithm, over the preset's."),
    ] = None
    grids: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="Values through which the network sees variables; null for none."
        ),
    ] = None
    as_json: AsJson = False


@takes(_Options)
def train(options: _Options) -> None:
    """Train a policy; the same command continues a run that was stopped."""
    subject = open_subject(options.model, options.properties, options.choice, options.constants)
    import torch

    torch.set_num_threads(1)  # small networks are slower with more
    training: Any = import_module("safetest_gym.callbacks.training")
    config = _config(options, subject)
    try:
        with interrupts_between_steps() as check, _progress(config.steps, check) as watch:
            summary = training.train(subject.task, config, options.out, watch=watch)
    except KeyboardInterrupt:
        print(f"the same command continues from {options.out}", file=sys.stderr)
        raise
    finally:
        if (options.out / "run.json").exists():
            remember_task(options.out, options)
    if options.as_json:
        print_json(summary)
    else:
        _print_summary(summary)


def _config(options: _Options, subject: Subject) -> Any:
    """The preset of the task, overridden by what was given."""
    presets: Any = import_module("safetest_gym.callbacks.presets")
    training: Any = import_module("safetest_gym.callbacks.training")
    preset = presets.preset_for(subject.task, subject.generator, options.algo)
    env = {**preset.arguments(subject.generator), **_read_mapping("--env", options.env)}
    if subject.observed is not None:
        env.setdefault("observed", list(subject.observed))
    return training.TrainConfig(
        algo=preset.algo,
        steps=preset.steps if options.steps is None else options.steps,
        net=preset.net if options.net is None else _read_widths(options.net),
        seed=options.seed,
        num_envs=preset.num_envs if options.envs is None else options.envs,
        every=options.every,
        env=env,
        learner={**preset.learner, **_read_mapping("--learner", options.learner)},
        grids=_read_grids(options.grids, preset.grids),
        step_limit=subject.step_limit,
    )


def _read_mapping(option: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} is no JSON: {error}; write for instance {option} '{{\"name\": 100}}'"
        ) from None
    if not isinstance(data, dict):
        raise ConfigError(f"{option} must be a JSON object, got {text}")
    return data


def _read_grids(text: str | None, preset: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if text is None:
        return preset
    return None if text.strip() == "null" else _read_mapping("--grids", text)


def _read_widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--net must be widths such as 64,64, got {text!r}") from None


@contextmanager
def interrupts_between_steps() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C wait for a call of what this gives; a second Ctrl-C does not wait.

    Raised wherever it arrives, it gets lost at times: torch, writing a file, makes a
    RuntimeError of it, and destructors drop it.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.default_int_handler(number, frame)
        asked = True

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(total: int, check: Callable[[], None]) -> Iterator[Any]:
    """Show steps on standard error while inside, and one line per evaluation.

    What it gives calls ``check`` every time.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False, highlight=False)
    bar = Progress(
        TextColumn("{task.completed:,} of {task.total:,} steps"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    )
    due = 0.0

    def watch(steps: int, evaluation: Evaluation | None, /) -> None:
        nonlocal due
        check()
        if evaluation is not None:
            bar.console.print(f"{steps:,} steps: {_ends(evaluation)}", soft_wrap=True)
        if (now := time.monotonic()) >= due:
            due = now + _REFRESH_SECONDS
            bar.update(row, completed=min(steps, total), refresh=True)

    with bar:
        row = bar.add_task("", total=total)
        yield watch


def _ends(evaluation: Evaluation) -> str:
    from safetest_gym.policies.runs import ENDS

    rates = ", ".join(f"{end} {100 * evaluation.end_rate(end).value:.1f} %" for end in ENDS)
    return f"{rates}; {evaluation.mean_steps:.0f} steps a run"


def _print_summary(summary: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    found, resumed = summary["evaluation"], summary["resumed_at"]
    table = Table(title=f"{summary['task']}, {summary['algo']}", title_justify="left")
    for name in ("runs of the final policy", "", "95 % interval"):
        table.add_column(name, justify="left" if name.startswith("runs") else "right")
    exact = found["exact_starts"] == found["starts"]
    rows = {**found["ends"], f"starts unsafe ({'exact' if exact else 'at least'})": found["unsafe"]}
    for name, rate in rows.items():
        interval = f"{100 * rate['low']:.1f} to {100 * rate['high']:.1f} %"
        table.add_row(name, f"{100 * rate['value']:.1f} %", interval)
    console = Console(markup=False, highlight=False, soft_wrap=True)
    if resumed == summary["steps"]:
        console.print(f"this run had finished after {summary['steps']:,} steps")
    elif resumed:
        console.print(f"continued at {resumed:,} steps")
    best = summary["best"]
    console.print(
        table,
        f"{summary['steps']:,} steps in {summary['seconds']:.0f} s",
        f"final policy: {summary['model']}",
        f"best policy:  {summary['best_model']} ({best['steps']:,} steps, goal "
        f"{100 * best['goal_rate']:.1f} %, failing {100 * best['failure_rate']:.1f} %)",
        sep="\n",
    )
