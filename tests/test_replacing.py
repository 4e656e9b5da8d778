"""Files that are always complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.replacing import replace_file


def test_the_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    for text in ("old", "new"):
        replace_file(path, lambda fresh, text=text: fresh.write_text(text))  # type: ignore[misc]
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_half_way_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text("old")

    def stop(fresh: Path) -> None:
        fresh.write_text("ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, stop)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
