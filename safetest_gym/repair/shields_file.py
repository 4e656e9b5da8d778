"""One versioned file per shield: what it forbids, and which task it belongs to."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.shields import CombinedShield, Shield, ShieldError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["load_shield", "save_shield"]

FORMAT = "safetest-gym shield"
VERSION = 1

_HEADER = {"task", "digest", "actions", "variables", "parts"}
_KINDS = {
    "faults": "shields:FaultShield",
    "decider": "shields:DeciderShield",
    "learned": "learned_shield:LearnedShield",
}


def save_shield(shield: Shield, path: str | Path) -> None:
    """Write a shield, with its task's digest and the names of actions and variables.

    The file is complete at every moment: it is written under another name first.
    """
    parts = shield.parts if isinstance(shield, CombinedShield) else (shield,)
    arrays: dict[str, Any] = {}
    described = []
    for number, part in enumerate(parts):
        options, held = part.to_data()
        described.append({"kind": part.kind, "options": options})
        arrays |= {f"{number}.{name}": array for name, array in held.items()}
    task = shield.task
    header = {
        "format": FORMAT,
        "version": VERSION,
        "task": task.name,
        "digest": task.digest,
        "actions": list(task.actions),
        "variables": [variable.name for variable in task.variables],
        "parts": described,
    }
    target = Path(path)
    fresh = target.with_name(f"unfinished-{target.name}")
    with fresh.open("wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
    os.replace(fresh, target)


def load_shield(path: str | Path, task: Task) -> Shield:
    """Read what `save_shield` wrote for the same task.

    Raises:
        ShieldError: the file holds no shield, or one of another task.
    """
    header, arrays = _read(Path(path))
    if header.get("version") != VERSION:
        raise ShieldError(
            f"{path} has version {header.get('version')} of the format, this program reads "
            f"version {VERSION}"
        )
    missing = sorted(_HEADER - header.keys())
    if missing:
        raise ShieldError(f"{path} is damaged: {', '.join(missing)} is missing")
    _check_task(Path(path), header, task)
    try:
        parts = [
            _read_part(task, number, described, arrays)
            for number, described in enumerate(header["parts"])
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ShieldError(f"{path} is damaged: {error}") from None
    return parts[0] if len(parts) == 1 else CombinedShield(*parts)


def _read_part(
    task: Task, number: int, described: Mapping[str, Any], arrays: dict[str, NDArray[Any]]
) -> Shield:
    module, _, name = _KINDS[described["kind"]].partition(":")
    kind: type[Shield] = getattr(import_module(f"safetest_gym.repair.{module}"), name)
    prefix = f"{number}."
    held = {key[len(prefix) :]: arrays[key] for key in arrays if key.startswith(prefix)}
    return kind.from_data(task, described["options"], held)


def _read(path: Path) -> tuple[Mapping[str, Any], dict[str, NDArray[Any]]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop("header")))
    except (ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise ShieldError(f"{path} holds no shield: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ShieldError(f"{path} holds no shield")
    return header, arrays


def _check_task(path: Path, header: Mapping[str, Any], task: Task) -> None:
    ours = {
        "actions": list(task.actions),
        "variables": [variable.name for variable in task.variables],
    }
    for what, names in ours.items():
        if header[what] != names:
            raise ShieldError(
                f"the shield in {path} was made for {header['task']} with the {what} "
                f"{', '.join(header[what])}; {task.name} has {', '.join(names)}"
            )
    if header["digest"] != task.digest:
        raise ShieldError(
            f"the shield in {path} was made for another {header['task']} than this {task.name}: "
            "the names are the same, but model, constants, conditions or action mode differ"
        )
