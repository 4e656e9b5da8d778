"""``safetest-gym export``: the task for other tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.failure import FailureProperty, FailureText, open_judged_subject
from safetest_gym.cli.options import (
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    check_output,
)

__all__ = ["ExportOptions", "export"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportOptions:
    """What `export` takes."""

    model: ModelFile
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The JANI file to write."),
    ]
    constants: Constants = None
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    failure: FailureText = None
    failure_property: FailureProperty = None
    form: Annotated[
        Literal["standard", "goal-reaching"],
        typer.Option(
            help="Filter properties over the model, or a model with an artificial goal that is "
            "surely reached exactly from the safe states."
        ),
    ] = "standard"

    @property
    def mode(self) -> Literal["label", "edge"]:
        """Other tools take every edge for an action."""
        return "edge"


@takes(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write the task as standard JANI, which Storm and others read."""
    check_output("--out", options.out)
    subject = open_judged_subject(options)
    from safetest_gym.deciders.exporting import export_standard
    from safetest_gym.deciders.goal_reaching import export_goal_reaching

    generator: Any = subject.generator
    document = (
        json.loads(options.model.read_text(encoding="utf-8-sig"))
        if generator is None
        else generator.model()
    )
    write = export_standard if options.form == "standard" else export_goal_reaching
    text = json.dumps(write(document, subject.task), ensure_ascii=False, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
