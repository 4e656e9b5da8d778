from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from safetest_gym.bench.experiment import find_experiment
from safetest_gym.bench.isolation import measure_apart
from safetest_gym.errors import WorkerError

CELL = {"work": "unheard of", "model": "none", "tool": "ours"}


def test_a_process_that_fails_is_told_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="KeyError: 'none'"):
        measure_apart(find_experiment("speed"), CELL, tmp_path)


def test_a_cell_that_does_not_end_within_the_cap_has_no_facts(tmp_path: Path) -> None:
    hasty = replace(find_experiment("speed"), cap_seconds=0.001)
    assert measure_apart(hasty, CELL, tmp_path) is None


def test_the_process_ends_when_the_one_that_waits_for_it_is_gone(tmp_path: Path) -> None:
    given = json.dumps({"cell": CELL, "folder": str(tmp_path)})
    done = subprocess.run(  # which closes its standard input at once
        [sys.executable, "-m", "safetest_gym.bench.isolation", "speed"],
        input=f"{given}\n",
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout == ""
