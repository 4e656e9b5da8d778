"""Every mistake in a document is a `JaniError` at its place.

Each case of the table breaks one thing of the small model: what to put under which keys (or
to delete), the path of the error expected, and a part of its message or hint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.errors import JaniError, JaniErrorGroup
from safetest_gym.jani import read_model
from tests.jani.small import DELETE, changed, small_model

TABLE = Path(__file__).resolve().parent.parent / "data" / "malformed" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(TABLE.read_text("utf-8"))


def test_the_small_model_that_the_cases_break_is_fine() -> None:
    assert read_model(small_model()).actions == ("go", "stop")


def test_there_are_at_least_sixty_cases_and_no_two_alike() -> None:
    assert len({json.dumps([case["keys"], case.get("value")]) for case in CASES}) >= 60


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_one_mistake_is_an_error_at_its_path(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "broken.jani"
    broken = changed(tuple(case["keys"]), DELETE if case.get("delete") else case["value"])
    file.write_text(json.dumps(broken, ensure_ascii=False), "utf-8")
    with pytest.raises(JaniError) as caught:
        read_model(file)
    error = caught.value
    errors = error.errors if isinstance(error, JaniErrorGroup) else (error,)
    here = [single for single in errors if single.path == case["path"]]
    assert here, f"nothing at {case['path']}: {error}"
    assert case["says"] in f"{here[0].message} {here[0].hint}"
    assert here[0].source == str(file)
