"""What callbacks change, for some trainings: a caller of `safetest_gym.bench.callbacks`.

Run from the checkout as ``python -m tests.benchmarks.callbacks_effect DIR [--seed N …]
[--task NAME …] [--training NAME …]``; the same DIR goes on. ``safetest-gym bench callbacks``
makes all of them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from safetest_gym.bench import Setting, run_experiment
from safetest_gym.bench.callbacks import EXPERIMENT, TASKS, TRAININGS, cells_of
from safetest_gym.bench.experiment import Cell
from safetest_gym.bench.writing import markdown_table


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--seed", type=int, action="append", help="default 11, 12 and 13")
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--training", action="append", choices=TRAININGS)
    options = parser.parse_args()

    def plan(setting: Setting) -> list[Cell]:
        tasks, trainings = options.task or list(TASKS), options.training or TRAININGS
        return cells_of(tasks, trainings, options.seed or (11, 12, 13))

    findings = run_experiment(
        replace(EXPERIMENT, plan=plan),
        options.folder,
        Setting(),
        command=["python", "-m", "tests.benchmarks.callbacks_effect", *sys.argv[1:]],
        watch=lambda done, text: print(done, text, file=sys.stderr, flush=True),
    )
    print("\n\n".join(markdown_table(table) for table in findings.tables))


if __name__ == "__main__":
    main()
