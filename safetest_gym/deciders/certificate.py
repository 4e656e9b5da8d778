"""Proofs of verdicts, as plain arrays; as files; as policies."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import CertificateError

if TYPE_CHECKING:
    from safetest_gym.policies.table import TablePolicy
    from safetest_gym.task import Task

__all__ = ["Certificate", "load_certificate"]

_FORMAT = "safetest-gym certificate 1"
_ARRAYS = ("states", "left", "rank", "choices")


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate:
    """Why the state in row 0 is safe or unsafe.

    SAFE: none of the states fails; each that is no goal and no dead end has one choice, all
    outcomes of which are among the states. UNSAFE: a state fails, or is no goal and has one
    choice per applicable action, with an outcome of that action of strictly smaller rank.

    With a radius, a state comes with the deviations that are left, and an action that is
    not the policy's uses one up.

    Attributes:
        digest: the task's.
        verdict: SAFE or UNSAFE.
        radius: the radius, or -1 for infinite.
        states: vectors (n, V); the same vector may come with different ``left``.
        left: deviations left (n,); zeros without a radius.
        rank: (n,); zeros for SAFE.
        choices: rows (row of a state, action, row of an outcome); -1 for the outcome if SAFE.
    """

    digest: str
    verdict: Verdict
    radius: int
    states: NDArray[Any]
    left: NDArray[np.int64]
    rank: NDArray[np.int64]
    choices: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.states)

    def save(self, path: str | Path) -> None:
        """Write an npz file."""
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file,
                format=np.array(_FORMAT),
                digest=np.array(self.digest),
                verdict=np.array(self.verdict.name),
                radius=np.array(self.radius),
                states=self.states,
                left=self.left,
                rank=self.rank,
                choices=self.choices,
            )

    def policy(self, task: Task) -> TablePolicy:
        """The safe way that a SAFE certificate describes, for all its states.

        It has no action elsewhere; runs from the certificate's states do not get there.
        With a radius it deviates at most so often along a run from the certificate's root.
        """
        from safetest_gym.policies.interface import Interface
        from safetest_gym.policies.table import TablePolicy

        if self.verdict is not Verdict.SAFE:
            raise CertificateError("only a SAFE certificate describes a policy")
        if self.digest != task.digest:
            raise CertificateError(f"the certificate is of another task than {task.name}")
        rows, actions = self.choices[:, 0], self.choices[:, 1]
        order = np.argsort(self.left[rows], kind="stable")
        vectors = self.states[rows[order]]
        # Of one state with several numbers left, the least: its way spares deviations.
        _, first = np.unique(vectors, axis=0, return_index=True)
        return TablePolicy(vectors[first], actions[order][first], Interface.of(task))


def load_certificate(path: str | Path) -> Certificate:
    """Read what `Certificate.save` wrote; whether it proves anything is not checked here."""
    source = Path(path)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            parts = {name: stored[name] for name in stored.files}
        if str(parts["format"]) != _FORMAT:
            raise CertificateError(f"{source} is no certificate that this version can read")
        return Certificate(
            digest=str(parts["digest"]),
            verdict=Verdict[str(parts["verdict"])],
            radius=int(parts["radius"]),
            **{name: parts[name] for name in _ARRAYS},
        )
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.error) as error:
        if isinstance(error, CertificateError):
            raise
        raise CertificateError(f"{source} is no certificate: {error}") from None
