"""Repair tree ensembles by the least change of leaf values, with new trees where needed ([C] 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy
from safetest_gym.repair.demand import Demands
from safetest_gym.repair.features import tree_features
from safetest_gym.repair.least_change import LeastChange, least_change
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import RepairError, RepairProblem, repair_problem
from safetest_gym.repair.ranking import masks_to_demands, ranked, unrankable
from safetest_gym.repair.separation import with_separation

__all__ = ["repair_leaves"]

_ROUNDS = 3
"""Conflicts that get a tree of their own; the next one separates all demands at once."""
_TINY = 1e-9


def repair_leaves(policy: TreeEnsemblePolicy, demands: Demands, settings: Settings) -> Outcome:
    """The policy with the least change of leaf values that meets all demands.

    Demands that no leaf values can meet together get a new tree that tells them apart. It
    ends: after a few conflicts one tree separates everything, and then a ranking of the
    actions per leaf of that tree is a solution.
    """
    current, added, rounds, notes = policy, 0, 0, list[str]()
    while True:
        features, places = tree_features(current, demands.states)
        problem = repair_problem(
            features,
            demands.faults,
            (demands.keep, demands.kept),
            settings.variant,
            settings.margin,
        )
        groups = unrankable(problem)
        if not len(groups):
            winners = _winners(problem) if rounds > _ROUNDS else None
            result = least_change(problem, settings.solver, settings.limits, winners)
            if result.change is not None:
                break
            if winners is not None:
                raise RepairError("a separated problem has no solution: please report this")
            rounds += 1
            groups = result.conflict if rounds <= _ROUNDS else np.flatnonzero(problem.hard)
            notes.append(_conflict_note(result, rounds))
        current, count = _separated(current, demands, problem, groups)
        added += count
    repaired, changed = _applied(current, result.change, places)
    # The bound holds for the trees as they are now.
    return Outcome(
        policy=repaired,
        algorithm=result.algorithm,
        objective=result.cost,
        lower_bound=result.bound,
        changed=changed,
        trees_added=added,
        notes=tuple(notes),
    )


def _conflict_note(result: LeastChange, rounds: int) -> str:
    if rounds > _ROUNDS:
        return f"after {_ROUNDS} conflicts one new tree separates all demands"
    proved = "cannot hold together" if result.confirmed else "were not found to hold together"
    return f"{len(result.conflict)} demands {proved}; a new tree separates them"


def _separated(
    policy: TreeEnsemblePolicy,
    demands: Demands,
    problem: RepairProblem,
    groups: NDArray[np.int64],
) -> tuple[TreeEnsemblePolicy, int]:
    rows = np.flatnonzero(np.isin(problem.group, groups))
    pairs = masks_to_demands(problem.good, problem.bad)
    wanted = [pairs[group] for group in problem.group[rows]]
    return with_separation(policy, demands.points[rows], wanted)


def _winners(problem: RepairProblem) -> NDArray[np.int64]:
    """Per group the action that wins in a ranking per leaf of the last tree."""
    pairs = masks_to_demands(problem.good, problem.bad)
    winners = np.asarray(problem.good.argmax(axis=1), dtype=np.int64)
    leaves = problem.features.index[:, -1]
    for leaf in np.unique(leaves):
        members = np.flatnonzero((leaves == leaf) & problem.hard)
        order = ranked([pairs[g] for g in members], problem.num_actions)
        for g in members:
            if pairs[g] in order:
                winners[g] = order[pairs[g]]
    return winners


def _applied(
    policy: TreeEnsemblePolicy, change: NDArray[np.float64] | None, places: NDArray[np.int64]
) -> tuple[TreeEnsemblePolicy, int]:
    """The policy with changed leaves, and how many values differ."""
    assert change is not None
    trees, changed = list(policy.trees), 0
    for t in np.unique(places[(np.abs(change) > _TINY).any(axis=1), 0]):
        tree: Tree = trees[t]
        mine = np.flatnonzero(places[:, 0] == t)
        values = tree.values.astype(np.float64)
        part = change[mine] if tree.output == VECTOR else change[mine, tree.output, None]
        values[places[mine, 1]] += np.where(np.abs(part) > _TINY, part, 0.0)
        trees[t] = replace(tree, values=values.astype(np.float32))
        changed += int((trees[t].values != tree.values).sum())
    return replace(policy, trees=tuple(trees)), changed
