"""``safetest-gym bench``: the papers' experiments on the bundled tasks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safetest_gym.cli.options import AsJson
from safetest_gym.cli.reporting import print_json
from safetest_gym.cli.testing import Seed, progress_bar

if TYPE_CHECKING:
    from safetest_gym.bench.experiment import Findings, Table

__all__ = ["bench"]


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Of the experiment; none to list them.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the results; the same one continues.",
            show_default="safetest-bench/NAME",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keeps trained policies; experiments that are given the same one share them.",
            show_default="the folder of the results",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small: under ten minutes on two processors.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Reproduce one of the papers' studies; what the folder has is not measured again."""
    from safetest_gym.bench import EXPERIMENTS, Setting, find_experiment, run_experiment

    if name is None:
        _list(EXPERIMENTS, as_json)
        return
    experiment = find_experiment(name)
    shown = experiment.name.replace("_", "-")
    folder = Path("safetest-bench") / shown if out is None else out
    command = ["safetest-gym", "bench", shown, *(["--quick"] if quick else [])]
    command += ["--seed", str(seed)] if seed else []
    setting = Setting(quick=quick, seed=seed)
    with progress_bar(len(experiment.plan(setting))) as advance:
        findings = run_experiment(
            experiment, folder, setting, store=store, command=command, watch=advance
        )
    if as_json:
        print_json({"experiment": shown, "folder": str(folder), **_plain(findings)})
    else:
        _print(findings, folder / f"{experiment.name}.md")


def _list(known: dict[str, str], as_json: bool) -> None:
    named = {name.replace("_", "-"): about for name, about in known.items()}
    if as_json:
        print_json({"experiments": named})
        return
    for name, about in named.items():
        print(f"{name}\n    {about}")


def _plain(findings: Findings) -> dict[str, Any]:
    tables = [asdict(table) for table in findings.tables]
    return {"tables": tables, "notes": list(findings.notes)}


def _print(findings: Findings, file: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for table in findings.tables:
        console.print(_rich(table))
    for note in findings.notes:
        console.print(f"- {note}", markup=False)
    console.print(f"results: {file}", markup=False, soft_wrap=True)


def _rich(table: Table) -> Any:
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, title_justify="left")
    for number, head in enumerate(table.heads):
        shown.add_column(head, justify="right" if number else "left")
    for row in table.rows:
        shown.add_row(*row)
    return shown
