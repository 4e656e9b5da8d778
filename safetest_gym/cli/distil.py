"""``safetest-gym distil``: a tree ensemble that imitates a policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.evaluate import MaxStates, RunsPerStart, Starts, print_evaluations
from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    check_output,
    open_subject,
)
from safetest_gym.cli.reporting import print_json
from safetest_gym.cli.testing import PolicyFile, Seed, open_policy

__all__ = ["distil"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """Arguments of the command."""

    model: ModelFile
    policy: PolicyFile
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The student: .json or .ubj.")
    ]
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    constants: Constants = None
    teacher_runs: Annotated[int, typer.Option(min=1, help="Runs to learn from.")] = 1000
    trees: Annotated[int, typer.Option(min=1)] = 20
    depth: Annotated[int, typer.Option(min=1)] = 5
    learning_rate: Annotated[float, typer.Option()] = 0.4
    dagger_rounds: Annotated[
        int, typer.Option(min=0, help="Rounds of the teacher's answers on the student's runs.")
    ] = 0
    starts: Starts = 1000
    runs: RunsPerStart = 100
    max_states: MaxStates = 2_000_000
    seed: Seed = 0
    as_json: AsJson = False


@takes(_Options)
def distil(options: _Options) -> None:
    """Train a tree ensemble on a policy's decisions, and compare the two."""
    check_output("--out", options.out, (".json", ".ubj"))
    subject = open_subject(options.model, options.properties, options.choice, options.constants)
    task = subject.task
    from safetest_gym.policies import EvaluationConfig, compare, save_policy
    from safetest_gym.policies import distil as distil_policy

    teacher = open_policy(options.policy, task)
    student = distil_policy(
        teacher,
        task,
        runs=options.teacher_runs,
        trees=options.trees,
        depth=options.depth,
        learning_rate=options.learning_rate,
        dagger_rounds=options.dagger_rounds,
        seed=options.seed,
    )
    save_policy(student, options.out)
    config = EvaluationConfig(
        step_limit=subject.step_limit, max_states=options.max_states, seed=options.seed
    )
    report = compare(teacher, student, task, options.starts, options.runs, config=config)
    agreement = {
        "agreement": report.agreement,
        "agreement_on_student_runs": report.agreement_of_student,
    }
    if options.as_json:
        both = {"teacher": report.teacher.as_json(), "student": report.student.as_json()}
        print_json({"task": task.name, "out": str(options.out), **agreement, **both})
        return
    print_evaluations(task.name, {"teacher": report.teacher, "student": report.student})
    print(f"same decision on the teacher's runs: {100 * report.agreement:.2f} %")
    print(f"same decision on the student's runs: {100 * report.agreement_of_student:.2f} %")
