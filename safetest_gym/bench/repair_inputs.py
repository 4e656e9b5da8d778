"""The policies that a debugging loop is measured with: as good as they can be and still fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.policies import first_failing, trained
from safetest_gym.replacing import replace_file

if TYPE_CHECKING:
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["LEARNT", "SEEDS", "Inputs"]

SEEDS = 2
"""Trainings to choose from: of every length with the first seed, then with the next one."""
LEARNT = (1000, 100, 30, 10, 3)
"""Runs of the longest training that ensembles learn from, to choose from."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A network, and an ensemble that imitates one; what is chosen is kept.

    Attributes:
        bundled: the task's name and parameters.
        plan: steps of trainings to choose from, the most first, and first seed.
        folder: keeps trained policies.
        place: keeps what was chosen.
    """

    task: Task
    bundled: tuple[str, Mapping[str, Any]]
    plan: tuple[Sequence[int], int]
    folder: Path
    place: Path

    def training(self) -> tuple[int, ...]:
        """Steps and seed of the network."""
        lengths, first = self.plan
        pairs = product(range(first, first + SEEDS), lengths)
        return self._chosen("training", ((steps, seed) for seed, steps in pairs), self._trained)

    def imitation(self) -> tuple[int, ...]:
        """Steps and seed of the ensemble's teacher, and how many of its runs were learnt from."""
        lengths, seed = self.plan
        plans: list[tuple[int, ...]] = [(lengths[0], seed, runs) for runs in LEARNT]
        plans.append((*self.training(), LEARNT[0]))
        return self._chosen("imitation", plans, self._imitated)

    def network(self) -> Policy:
        """The network."""
        return self._trained(self.training())

    def ensemble(self) -> Policy:
        """The ensemble, made once."""
        from safetest_gym.policies import load_policy, save_policy

        file = self.place / "input.json"
        if not file.exists():
            save_policy(self._imitated(self.imitation()), file)
        return load_policy(file, self.task)

    def _chosen(
        self,
        name: str,
        plans: Iterable[tuple[int, ...]],
        make: Callable[[tuple[int, ...]], Policy],
    ) -> tuple[int, ...]:
        file = self.place / f"{name}.json"
        if not file.exists():
            chosen = first_failing(self.task, plans, make, self.plan[1])
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, lambda fresh: fresh.write_text(json.dumps(chosen)))
        return tuple(json.loads(file.read_text()))

    def _trained(self, plan: tuple[int, ...]) -> Policy:
        steps, seed = plan[:2]
        return trained(*self.bundled, (steps, seed), self.folder)

    def _imitated(self, plan: tuple[int, ...]) -> Policy:
        from safetest_gym.policies import distil

        runs = plan[2]
        return distil(self._trained(plan), self.task, runs=runs, trees=20, depth=5, dagger_rounds=0)
