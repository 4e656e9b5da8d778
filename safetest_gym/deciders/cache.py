"""Proved facts in a file: packed states with their verdicts, for one task only."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import CacheError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["read_facts", "write_facts"]

_FORMAT = "safetest-gym facts 1"
_PARTS = ("digest", "layout", "words", "verdicts")

Words = NDArray[np.int64]


def write_facts(path: str | Path, task: Task, words: Words, verdicts: NDArray[np.uint8]) -> None:
    """Write packed states (n, W) and their verdicts; the file is complete at every moment."""
    target = Path(path)
    fresh = target.with_name(f"unfinished-{target.name}")
    with fresh.open("wb") as file:
        np.savez(
            file,
            format=np.array(_FORMAT),
            digest=np.array(task.digest),
            layout=np.array(_layout(task)),
            words=words,
            verdicts=verdicts,
        )
    os.replace(fresh, target)


def read_facts(path: str | Path, task: Task) -> tuple[Words, NDArray[np.uint8]]:
    """Read what `write_facts` wrote for the same task."""
    source = Path(path)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            parts = {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CacheError(f"{source} holds no facts: {error}") from None
    if str(parts.get("format")) != _FORMAT:
        raise CacheError(f"{source} holds no facts that this version can read")
    missing = [name for name in _PARTS if name not in parts]
    if missing:
        raise CacheError(f"{source} is damaged: {', '.join(missing)} is missing")
    if str(parts["digest"]) != task.digest:
        raise CacheError(
            f"{source} holds facts of another task than {task.name}: its digest is "
            f"{parts['digest']}, not {task.digest} (same model, constants, conditions and "
            "action mode are needed)"
        )
    if str(parts["layout"]) != _layout(task):
        raise CacheError(f"{source} was written by a version that packs states differently")
    words, verdicts = parts["words"], parts["verdicts"]
    if words.dtype.kind != "i" or verdicts.ndim != 1:
        raise CacheError(f"{source} is damaged")
    if words.shape != (len(verdicts), task.engine.num_words) or not np.isin(verdicts, (1, 2)).all():
        raise CacheError(f"{source} is damaged")
    return np.ascontiguousarray(words, np.int64), verdicts.astype(np.uint8)


def _layout(task: Task) -> str:
    fields = task.engine.layout.fields
    return ";".join(f"{f.word},{f.shift},{f.width},{f.offset}" for f in fields)
