"""The folder of a debugging loop: what was done, every policy, every fault.

``loop.json`` says what is finished; it is replaced at once after everything that it names
is on disk, so a killed loop goes on from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from safetest_gym.errors import ConfigError
from safetest_gym.policies import MlpPolicy, Policy, TreeEnsemblePolicy, load_policy, save_policy
from safetest_gym.policies.interface import TaskNames

__all__ = ["DebugFolder", "Iteration", "fingerprint", "suffix_for"]

VERSION = 1
_UNFINISHED = "unfinished"


@dataclass(frozen=True, kw_only=True, slots=True)
class Iteration:
    """One policy of the loop, and how the next one was made from it.

    Attributes:
        number: of the policy; 0 is the input.
        unsafe_rate, goal_rate: on the evaluation starts, as fractions.
        exact: whether ``unsafe_rate`` is exact for these starts, else a lower bound.
        faults_new: found on this policy and never before.
        faults_total: known by now.
        faults_open: of these, how many the newest policy does not fix.
        unsafe_runs, unavoidable, unresolved: of the test's runs, how many fail, have no fault
            because failing cannot be avoided, and were left open by a budget.
        repair: what the repair that made the next policy says, None if there was none.
        verification: what verification says, None if it was not asked.
        comparison: the input policy beside this one, on the evaluation starts.
        seconds: by step.
    """

    number: int
    unsafe_rate: float
    goal_rate: float
    exact: bool
    faults_new: int
    faults_total: int
    faults_open: int
    unsafe_runs: int
    unavoidable: int
    unresolved: int
    repair: dict[str, Any] | None = None
    verification: dict[str, Any] | None = None
    comparison: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


class _Saved(Protocol):
    def save(self, path: str | Path) -> None: ...


class DebugFolder:
    """Reads and writes the folder of one loop."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path, self.suffix = path, suffix
        try:
            (path / "policies").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"a debugging loop cannot be kept in {path}: {error}") from None

    @property
    def faults(self) -> Path:
        """The fault store."""
        return self.path / "faults.db"

    def policy_file(self, number: int) -> Path:
        """Where a policy is."""
        return self.path / "policies" / f"{number:03d}{self.suffix}"

    def save_policy(self, policy: Policy, number: int) -> None:
        """Write a policy with what belongs to it, the file itself last."""
        fresh = self.path / "policies" / _UNFINISHED
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        final = self.policy_file(number)
        save_policy(policy, fresh / final.name)
        for entry in sorted(fresh.iterdir(), key=lambda entry: entry.name == final.name):
            os.replace(entry, final.parent / entry.name)
        fresh.rmdir()

    def load_policy(self, number: int, task: TaskNames) -> Policy:
        """Read a policy."""
        return load_policy(self.policy_file(number), task)

    def save_proof(self, proof: _Saved, number: int) -> str:
        """Write the proof that a policy is safe; its name in the folder."""
        fresh, final = self.path / f"{_UNFINISHED}.npz", self.path / f"proof-{number:03d}.npz"
        proof.save(fresh)
        os.replace(fresh, final)
        return final.name

    def read(self) -> dict[str, Any] | None:
        """The contents of ``loop.json``, None if there is none yet."""
        path = self.path / "loop.json"
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            version = data["version"]
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path} is no record of a debugging loop: {error!r}") from None
        if version != VERSION:
            raise ConfigError(
                f"{path} has format {version}, this program writes format {VERSION}; use a new "
                "folder"
            )
        found: dict[str, Any] = data
        return found

    def write(self, data: Mapping[str, Any]) -> None:
        """Replace ``loop.json``."""
        fresh = self.path / f"{_UNFINISHED}.json"
        with fresh.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **data}, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path / "loop.json")


def suffix_for(policy: Policy) -> str:
    """The kind of file that policies of a loop go into."""
    if isinstance(policy, TreeEnsemblePolicy):
        return ".json"
    if isinstance(policy, MlpPolicy):
        return ".pt"
    raise ConfigError(
        f"a {type(policy).__name__} cannot be repaired: only tree ensembles and networks can"
    )


def fingerprint(policy: Policy) -> str:
    """A short name of what a policy computes, the same after saving and loading."""
    native = policy.native()
    assert native is not None, "policies that can be repaired have a form for kernels"
    names = policy.interface
    text = json.dumps([native.kind, names.variables, names.actions]).encode()
    return hashlib.sha256(text + native.data.tobytes()).hexdigest()[:12]
