"""Proofs that a policy is safe: sets of states that its runs do not leave, as files."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import CertificateError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["InductiveBoxes", "InductiveSet", "InductiveStates", "load_proof"]

_FORMAT = "safetest-gym inductive set 1"
_SLICE = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class InductiveStates:
    """A set of states, listed.

    It proves a policy safe if none of them fails, the start states are among them, and so
    is every outcome of what the policy does in one of them.

    Attributes:
        digest: the task's.
        columns: per variable its values, each (n,), in the narrowest type that holds them.
    """

    digest: str
    columns: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, task: Task, packed: NDArray[np.int64]) -> InductiveStates:
        """From packed states (n, W)."""
        kinds = [_narrow(v.kind, v.lower, v.upper) for v in task.variables]
        columns = tuple(np.empty(len(packed), kind) for kind in kinds)
        for first in range(0, len(packed), _SLICE):
            part = task.engine.unpack(packed[first : first + _SLICE])
            for column, values in zip(columns, part.T, strict=True):
                column[first : first + _SLICE] = values
        return cls(task.digest, columns)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def rows(self, which: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Vectors of some of the states."""
        return np.stack([column[which] for column in self.columns], axis=1)

    def save(self, path: str | Path) -> None:
        """Write one npz file."""
        arrays = {f"column_{i}": column for i, column in enumerate(self.columns)}
        _write(path, self.digest, "states", arrays)


@dataclass(frozen=True, slots=True, eq=False)
class InductiveBoxes:
    """A set of states given as boxes, which are cells of a grid.

    Piece i of a variable has the values from ``cuts[i]`` up to, but without,
    ``cuts[i + 1]`` as IEEE doubles; the last cut is only an end.

    Attributes:
        digest: the task's.
        cuts: per variable, ascending float64.
        cells: per box and variable, the piece; int32 (n, V).
    """

    digest: str
    cuts: tuple[NDArray[np.float64], ...]
    cells: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.cells)

    def save(self, path: str | Path) -> None:
        """Write one npz file."""
        arrays: dict[str, NDArray[Any]] = {f"cuts_{i}": cut for i, cut in enumerate(self.cuts)}
        _write(path, self.digest, "boxes", {**arrays, "cells": self.cells})


InductiveSet = InductiveStates | InductiveBoxes


def load_proof(path: str | Path) -> InductiveSet:
    """Read what ``save`` wrote; whether it proves anything is not checked here."""
    source = Path(path)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            parts = {name: stored[name] for name in stored.files}
        if str(parts["format"]) != _FORMAT:
            raise CertificateError(f"{source} is no proof that this version can read")
        digest, kind = str(parts["digest"]), str(parts["kind"])
        if kind == "states":
            return InductiveStates(digest, _series(parts, "column"))
        return InductiveBoxes(digest, _series(parts, "cuts"), parts["cells"])
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.error) as error:
        if isinstance(error, CertificateError):
            raise
        raise CertificateError(f"{source} is no proof: {error}") from None


def _series(parts: dict[str, NDArray[Any]], name: str) -> tuple[NDArray[Any], ...]:
    count = sum(key.startswith(f"{name}_") for key in parts)
    return tuple(parts[f"{name}_{i}"] for i in range(count))


def _write(path: str | Path, digest: str, kind: str, arrays: dict[str, NDArray[Any]]) -> None:
    facts = {"format": np.array(_FORMAT), "digest": np.array(digest), "kind": np.array(kind)}
    with Path(path).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **facts, **arrays)


def _narrow(kind: str, lower: float | None, upper: float | None) -> np.dtype[Any]:
    """A type for all values of a variable."""
    if kind == "real":
        return np.dtype(np.float64)
    if kind == "bool":
        return np.dtype(np.uint8)
    if lower is None or upper is None:
        return np.dtype(np.int64)
    return np.result_type(np.min_scalar_type(int(lower)), np.min_scalar_type(int(upper)))
