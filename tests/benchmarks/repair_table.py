"""[C] Table 1 for our tasks, for some of the rows: a caller of `safetest_gym.bench.repair`.

Run from the checkout as ``python -m tests.benchmarks.repair_table --keep DIR [--quick]
[--markdown] [ROW …]``; the same DIR goes on. ``safetest-gym bench repair`` makes all rows.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from safetest_gym.bench import Setting, run_experiment
from safetest_gym.bench.experiment import Cell
from safetest_gym.bench.repair import EXPERIMENT, TASKS, cells_of
from safetest_gym.bench.writing import markdown_table


def main() -> None:
    """Measure what the folder does not have, and print where the results are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(TASKS))
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options = parser.parse_args()
    if unknown := [row for row in options.rows if row not in TASKS]:
        parser.error(f"there is no row {unknown[0]!r}")

    def plan(setting: Setting) -> list[Cell]:
        return cells_of(options.rows or list(TASKS), setting)

    findings = run_experiment(
        replace(EXPERIMENT, plan=plan),
        options.keep,
        Setting(quick=options.quick),
        command=["python", "-m", "tests.benchmarks.repair_table", *sys.argv[1:]],
        watch=lambda done, text: print(done, text, file=sys.stderr, flush=True),
    )
    if options.markdown:
        print("\n\n".join(markdown_table(table) for table in findings.tables))
    print(options.keep / "repair.md")


if __name__ == "__main__":
    main()
