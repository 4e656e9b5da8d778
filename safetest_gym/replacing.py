"""Files that are always complete, also after kill -9."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, then give it that name."""
    fresh = path.with_name(f"unfinished-{path.name}")
    try:
        write(fresh)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
