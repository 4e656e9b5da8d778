"""The folder of a training run: everything needed to go on after being killed.

``run.json`` says what the run is, ``checkpoints/<steps>/`` is the newest state of it and
``summary.json`` is there once it has finished. Whatever has its final name is complete:
files and folders are written under another name first.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetest_gym.callbacks.file_lock import try_lock
from safetest_gym.errors import ConfigError
from safetest_gym.replacing import replace_file

__all__ = ["RunFolder"]

_RUN, _SUMMARY, _CHECKPOINTS = "run.json", "summary.json", "checkpoints"
_UNFINISHED, _LOCK = "unfinished", ".lock"


class RunFolder:
    """Files of one run below ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder; the lock ends with this process at the latest.

        Raises:
            ConfigError: another run is at work here.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a", encoding="utf-8") as file:
            if not try_lock(file):
                raise ConfigError(
                    f"another run is at work in {self.path}; wait for its end or give "
                    "another folder"
                )
            yield

    def claim(self, options: Mapping[str, Any]) -> None:
        """Begin a run with these options here, or make sure that it is this run's folder.

        A run that ended before its first checkpoint, such as one with options that the
        learner refused, leaves its folder to any other.

        Raises:
            ConfigError: the folder holds another run or something else.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        wanted = json.loads(json.dumps(options))
        if not (self.path / _RUN).exists():
            names = [entry.name for entry in self.path.iterdir()]
            if any(name != _LOCK and not name.startswith(_UNFINISHED) for name in names):
                raise ConfigError(f"{self.path} holds other files; give an empty or new folder")
            self.write_json(_RUN, wanted)
            return
        found = self._read(_RUN)
        different = [
            f"{name} {found.get(name)!r} there, {wanted.get(name)!r} now"
            for name in sorted({*found, *wanted})
            if found.get(name) != wanted.get(name)
        ]
        if different and self.checkpoint() is None and self.summary() is None:
            self.write_json(_RUN, wanted)
        elif different:
            raise ConfigError(
                f"{self.path} holds a run with other options ({'; '.join(different)}); "
                "give the same ones to continue it, or another folder"
            )

    def summary(self) -> dict[str, Any] | None:
        """What the run came to, None while it has not finished."""
        return self._read(_SUMMARY) if (self.path / _SUMMARY).exists() else None

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the run as finished; its checkpoint is no longer needed."""
        self.write_json(_SUMMARY, summary)
        shutil.rmtree(self.path / _CHECKPOINTS, ignore_errors=True)

    def checkpoint(self) -> Path | None:
        """The newest complete checkpoint."""
        folders = self.path / _CHECKPOINTS
        found = [entry for entry in folders.glob("*") if entry.name.isdigit()]
        return max(found, key=lambda entry: int(entry.name), default=None)

    def save_checkpoint(self, steps: int, write: Callable[[Path], None]) -> None:
        """Let ``write`` fill a folder, and make that the newest checkpoint."""
        folders = self.path / _CHECKPOINTS
        fresh, final = folders / _UNFINISHED, folders / str(steps)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        write(fresh)
        if final.exists():
            return  # the very same state; only after resuming
        os.replace(fresh, final)
        for entry in folders.iterdir():
            if entry != final:
                shutil.rmtree(entry, ignore_errors=True)

    def write(self, name: str, write: Callable[[Path], None]) -> Path:
        """Let ``write`` make a file of this name; return its path."""
        final = self.path / name
        replace_file(final, write)
        return final

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write JSON under its final name at once."""
        text = json.dumps(data, indent=1) + "\n"
        self.write(name, lambda path: _write_text(path, text))

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{path} is no JSON: {error}") from error
        if not isinstance(data, dict):
            raise ConfigError(f"{path} must hold a JSON object")
        return data


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
