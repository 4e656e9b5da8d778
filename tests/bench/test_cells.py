from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.bench.cells import CellFile
from safetest_gym.errors import ConfigError


def test_a_cell_that_was_added_is_there_the_next_time(tmp_path: Path) -> None:
    CellFile(tmp_path / "cells.jsonl").add({"task": "a", "seed": 1}, {"unsafe": 3})
    again = CellFile(tmp_path / "cells.jsonl")
    assert {"seed": 1, "task": "a"} in again
    assert [row.facts for row in again.rows([{"task": "a", "seed": 1}])] == [{"unsafe": 3}]


def test_a_line_cut_short_by_a_kill_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    CellFile(path).add({"task": "a"}, {"unsafe": 3})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"cell": {"task": "b"}, "fa')
    cells = CellFile(path)
    assert {"task": "b"} not in cells
    assert path.read_bytes() == whole


def test_cells_come_in_the_order_of_the_plan_without_those_not_measured(tmp_path: Path) -> None:
    cells = CellFile(tmp_path / "cells.jsonl")
    for name in ("b", "a"):
        cells.add({"task": name}, {})
    rows = cells.rows([{"task": "a"}, {"task": "c"}, {"task": "b"}])
    assert [row.cell["task"] for row in rows] == ["a", "b"]


def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_text('{"faults": []}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1 is no measured cell"):
        CellFile(path)
