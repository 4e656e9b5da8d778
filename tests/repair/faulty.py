"""Random policies with random faults, and plain checks of their repairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies import TreeEnsemblePolicy
from safetest_gym.policies.policy import Policy
from safetest_gym.repair.requests import FaultSet
from tests.oracles.policies import ensemble, interface, random_tree

__all__ = ["bad_decisions", "faults_of", "forest", "taken"]


def forest(
    seed: int, *, trees: int = 6, features: int = 4, actions: int = 4, nodes: int = 6, vector: bool
) -> TreeEnsemblePolicy:
    """A random ensemble; without vector leaves its trees serve the actions in turn."""
    rng = np.random.default_rng(seed)
    grown = [
        random_tree(rng, features, nodes, actions if vector else 1, -1 if vector else t % actions)
        for t in range(trees)
    ]
    return ensemble(grown, rng.normal(size=actions), interface(features, actions))


def faults_of(
    policy: Policy, seed: int, count: int, *, states: NDArray[Any] | None = None
) -> FaultSet:
    """Distinct random states where an action is called bad and some others safe.

    Half of the bad actions are not what the policy does, as after earlier repairs.
    """
    rng = np.random.default_rng(seed)
    actions = policy.interface.num_actions
    if states is None:
        states = rng.integers(-3, 12, (count, policy.interface.num_columns))
    states = np.unique(states, axis=0)
    applicable = rng.random((len(states), actions)) < 0.8
    applicable[:, :2] = True
    now = policy.actions(states, applicable)
    others = applicable & (rng.random(applicable.shape) < 0.3)
    others[np.arange(len(states)), now] |= ~others.any(axis=1)
    bad = others.argmax(axis=1)
    safe = applicable & (rng.random(applicable.shape) < 0.5)
    safe[np.arange(len(states)), bad] = False
    ok = safe.any(axis=1)
    return FaultSet(states=states[ok], actions=bad[ok], applicable=applicable[ok], safe=safe[ok])


def taken(policy: Policy, faults: FaultSet) -> NDArray[np.int64]:
    return policy.actions(faults.states, faults.applicable)


def bad_decisions(policy: Policy, faults: FaultSet, variant: str) -> list[int]:
    """Rows where the policy still does what it must not, asked state by state."""
    wrong = []
    for row, action in enumerate(taken(policy, faults)):
        fine = action != faults.actions[row] if variant == "weak" else faults.safe[row, action]
        if not fine:
            wrong.append(row)
    return wrong
