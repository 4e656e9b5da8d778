"""Measure one cell in a process of its own: ``python -m safetest_gym.bench.isolation NAME``.

The cell comes as JSON on standard input, with the folder; the facts are the last line of
standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from safetest_gym.bench.experiment import Cell, Experiment, Facts, find_experiment
from safetest_gym.errors import WorkerError

__all__ = ["measure_apart"]


def measure_apart(experiment: Experiment, cell: Cell, folder: Path) -> Facts | None:
    """Facts of a cell, or None when it did not end within the experiment's cap.

    Raises:
        WorkerError: the process failed.
    """
    command = [sys.executable, "-m", __name__, experiment.name]
    # The checkout or installation that runs now, wherever the new process starts.
    here = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    try:
        done = subprocess.run(
            command,
            input=json.dumps({"cell": cell, "folder": str(folder)}),
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=experiment.cap_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise WorkerError(f"{experiment.name} {cell} failed: {last[0]}")
    facts: Facts = json.loads(done.stdout.splitlines()[-1])
    return facts


def _main() -> None:
    given = json.loads(sys.stdin.read())
    facts = find_experiment(sys.argv[1]).measure(given["cell"], Path(given["folder"]))
    print(json.dumps(facts))


if __name__ == "__main__":
    _main()
