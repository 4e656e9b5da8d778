"""Measure one cell in a process of its own: ``python -m safetest_gym.bench.isolation NAME``.

The cell comes as one line of JSON on standard input, with the folder; the facts are the last
line of standard output. The process ends when its standard input does, so it does not outlive
the one that waits for it, however that ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

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
    with TemporaryFile("w+") as out, TemporaryFile("w+") as errors:
        given = json.dumps({"cell": cell, "folder": str(folder)})
        environment = {**os.environ, "PYTHONPATH": paths}
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True
        ) as process:
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):  # it has failed already
                    process.stdin.write(f"{given}\n")
                    process.stdin.flush()  # and left open: its end would end the process
                code = process.wait(experiment.cap_seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()
        if code != 0:
            errors.seek(0)
            last = errors.read().strip().splitlines()[-1:] or [f"exit code {code}"]
            raise WorkerError(f"{experiment.name} {cell} failed: {last[0]}")
        out.seek(0)
        facts: Facts = json.loads(out.read().splitlines()[-1])
        return facts


def _end_with_parent() -> None:
    """Wait for the end of standard input, then end, whatever is going on."""
    os.read(0, 1)
    os._exit(1)


def _main() -> None:
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    facts = find_experiment(sys.argv[1]).measure(given["cell"], Path(given["folder"]))
    print(json.dumps(facts))


if __name__ == "__main__":
    _main()
