"""Masks for states that were never tested: one classifier per action, taught by a decider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.deciders.base import require_decider_of
from safetest_gym.errors import ConfigError
from safetest_gym.repair.shields import RememberingShield, ShieldError

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.task import Task

__all__ = ["LearnConfig", "LearnedShield", "ShieldReport", "walked_states"]

State = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnConfig:
    """How a shield is learned.

    Attributes:
        recall: fraction of the calibration faults that thresholds must block; they are
            the highest that do.
        trees: per action.
        depth: of a tree; None for no limit.
        held_out: fraction of states for calibration, and as many again for the report.
    """

    recall: float = 0.99
    trees: int = 20
    depth: int | None = None
    held_out: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.recall <= 1 or not 0 < self.held_out < 0.5:
            raise ConfigError(
                f"recall must be in (0, 1] and held_out in (0, 0.5), got {self.recall} and "
                f"{self.held_out}"
            )
        if self.trees < 1 or (self.depth is not None and self.depth < 1) or self.seed < 0:
            raise ConfigError(
                "trees and depth must be at least 1 and seed not negative, got "
                f"{self.trees}, {self.depth} and {self.seed}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ShieldReport:
    """What a learned shield does in states that it has not seen.

    Attributes:
        states: safe states looked at.
        blocked: faults (safe state, unsafe action) that it blocks.
        missed: faults that it lets through.
        safe_actions: safe actions in these states.
        wrongly_blocked: those of them that it blocks.
        all_blocked: states where it would block everything, so that it steps aside.
    """

    states: int
    blocked: int
    missed: int
    safe_actions: int
    wrongly_blocked: int
    all_blocked: int

    def describe(self) -> str:
        """A sentence for people."""
        return (
            f"in {self.states} unseen safe states: {self.blocked} faults blocked, {self.missed} "
            f"missed; {self.wrongly_blocked} of {self.safe_actions} safe actions blocked wrongly; "
            f"everything blocked in {self.all_blocked}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """Trees of all actions as flat arrays; inner nodes go left where x <= threshold.

    Attributes:
        feature: per node, -1 in leaves.
        children: (nodes, 2).
        value: chance of being unsafe, in leaves.
        roots: (actions, trees).
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    children: NDArray[np.int32]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]

    def scores(self, states: State) -> NDArray[np.float64]:
        """Per state and action, (n, A): how surely unsafe."""
        features = np.asarray(states, np.float32)
        node = np.broadcast_to(self.roots.ravel(), (len(features), self.roots.size)).copy()
        rows = np.arange(len(features))[:, None]
        while True:
            feature = self.feature[node]
            inner = feature >= 0
            if not inner.any():
                break
            right = features[rows, np.maximum(feature, 0)] > self.threshold[node]
            node = np.where(inner, self.children[node, right.astype(np.int8)], node)
        chances: NDArray[np.float64] = self.value[node].reshape(-1, *self.roots.shape).mean(axis=2)
        return chances


class LearnedShield(RememberingShield):
    """Forbids actions that a classifier takes for unsafe; see `learn`.

    It promises nothing: combine it with a `FaultShield` to be sure of known faults.

    Attributes:
        thresholds: per action; from this score on it is forbidden.
        quality: on states used for nothing else.
    """

    kind: ClassVar[str] = "learned"

    def __init__(
        self, task: Task, forest: _Forest, thresholds: NDArray[np.float64], quality: ShieldReport
    ) -> None:
        super().__init__(task)
        self._forest = forest
        self.thresholds = thresholds
        self.quality = quality

    @classmethod
    def learn(
        cls,
        task: Task,
        states: State,
        config: LearnConfig | None = None,
        *,
        decider: Decider | None = None,
    ) -> Self:
        """Learn from states (n, V), such as fault states and what a policy walks through.

        Args:
            decider: labels every action; its cache is used. By default a new one.
        """
        options = config or LearnConfig()
        if decider is not None:
            require_decider_of(task, decider)
        labelled, unsafe, known = _labels(task, states, decider)
        parts = _split(len(labelled), options)
        forest = _grow(labelled[parts[0]], (unsafe[parts[0]], known[parts[0]]), options)
        calibration = forest.scores(labelled[parts[1]])
        thresholds = _thresholds(calibration, unsafe[parts[1]] & known[parts[1]], options.recall)
        blocked = forest.scores(labelled[parts[2]]) >= thresholds
        quality = _quality(blocked, unsafe[parts[2]], known[parts[2]])
        return cls(task, forest, thresholds, quality)

    def _judge(self, states: State, applicable: Mask) -> Mask:
        permitted: Mask = self._forest.scores(states) < self.thresholds
        return permitted

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        forest = self._forest
        arrays: dict[str, NDArray[Any]] = {
            "feature": forest.feature,
            "threshold": forest.threshold,
            "children": forest.children,
            "value": forest.value,
            "roots": forest.roots,
            "limits": self.thresholds,
        }
        return {"quality": asdict(self.quality)}, arrays

    @classmethod
    def from_data(
        cls, task: Task, options: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> Self:
        names = ("feature", "threshold", "children", "value", "roots")
        forest = _Forest(*(arrays[name] for name in names))
        if len(forest.roots) != task.num_actions or arrays["limits"].shape != (task.num_actions,):
            raise ShieldError(f"{task.name} has {task.num_actions} actions, the shield others")
        return cls(task, forest, arrays["limits"], ShieldReport(**options["quality"]))


def walked_states(task: Task, count: int, seed: int = 0, *, length: int = 50) -> State:
    """Up to ``count`` different states on random walks from start states, not terminal ones."""
    rng = np.random.default_rng(seed)
    walkers = max(1, count // length)
    found = np.empty((0, task.num_variables), task.dtype)
    for _ in range(5):
        states = task.initial.sample(walkers, rng)
        layers = [found]
        for _ in range(length):
            masks = task.applicable_many(states)
            open_ = masks.any(axis=1) & (task.classify(states) == 0)
            states, masks = states[open_], masks[open_]
            if not len(states):
                break
            layers.append(states)
            actions = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)
            states = task.step_many(states, actions, rng)
        found = np.unique(np.concatenate(layers), axis=0)
        if len(found) >= count:
            break
    return found[rng.permutation(len(found))[:count]]


def _labels(task: Task, states: State, decider: Decider | None) -> tuple[State, Mask, Mask]:
    """Different safe states, which actions are unsafe there, and which are decided at all."""
    distinct = np.unique(np.asarray(states, task.dtype), axis=0)
    distinct = distinct[task.classify(distinct) == 0]
    if not len(distinct):
        raise ConfigError("a shield is learned from states that are neither failing nor goals")
    verdicts = (decider or make_decider("otf", task)).action_verdicts(distinct)
    safe = (verdicts == Verdict.SAFE).any(axis=1)
    verdicts = verdicts[safe]
    unsafe = verdicts == Verdict.UNSAFE
    if len(distinct[safe]) < 10 or not unsafe.any():
        raise ConfigError(
            f"{len(distinct[safe])} different safe states with {int(unsafe.sum())} unsafe actions "
            "are too few to learn from; give more states, for instance from walked_states"
        )
    return distinct[safe], unsafe, unsafe | (verdicts == Verdict.SAFE)


def _split(count: int, config: LearnConfig) -> list[NDArray[np.int64]]:
    """Indices for training, calibration and the report."""
    order = np.random.default_rng(config.seed).permutation(count)
    held = max(1, int(count * config.held_out))
    return [order[2 * held :], order[:held], order[held : 2 * held]]


def _grow(states: State, labels: tuple[Mask, Mask], config: LearnConfig) -> _Forest:
    from sklearn.ensemble import RandomForestClassifier

    unsafe, known = labels
    columns: list[list[NDArray[Any]]] = [[], [], [], []]
    roots = np.zeros((unsafe.shape[1], config.trees), np.int32)
    total = 0
    for action in range(unsafe.shape[1]):
        rows = known[:, action]
        target = unsafe[rows, action]
        if target.all() or not target.any():
            trees = [_leaf(float(len(target) > 0 and target.all()))] * config.trees
        else:
            model = RandomForestClassifier(
                config.trees, max_depth=config.depth, random_state=config.seed, n_jobs=1
            ).fit(states[rows].astype(np.float32), target)
            trees = [_tree(estimator.tree_) for estimator in model.estimators_]
        for number, (feature, threshold, children, value) in enumerate(trees):
            roots[action, number] = total
            for column, array in zip(
                columns, (feature, threshold, children + total, value), strict=True
            ):
                column.append(array)
            total += len(feature)
    feature, threshold, children, value = map(np.concatenate, columns)
    return _Forest(feature, threshold, children.astype(np.int32), value, roots)


def _leaf(value: float) -> tuple[NDArray[Any], ...]:
    nowhere = np.zeros((1, 2), np.int32)
    return np.array([-1], np.int32), np.zeros(1), nowhere, np.array([value])


def _tree(tree: Any) -> tuple[NDArray[Any], ...]:
    """A tree of scikit-learn; children of leaves are never followed."""
    feature = np.maximum(tree.feature, -1).astype(np.int32)
    children = np.column_stack([tree.children_left, tree.children_right])
    weight = tree.value[:, 0, :]
    return feature, tree.threshold, np.maximum(children, 0), weight[:, 1] / weight.sum(axis=1)


def _thresholds(scores: NDArray[np.float64], faults: Mask, recall: float) -> NDArray[np.float64]:
    """Per action the highest score that at least ``recall`` of its faults reach."""
    limits = np.full(scores.shape[1], 0.5)
    for action in range(scores.shape[1]):
        reached = np.sort(scores[faults[:, action], action])
        if len(reached):
            spare = int(np.floor((1 - recall) * len(reached) + 1e-9))
            limits[action] = reached[spare]
    return limits


def _quality(blocked: Mask, unsafe: Mask, known: Mask) -> ShieldReport:
    safe = known & ~unsafe
    applicable = known
    return ShieldReport(
        states=len(blocked),
        blocked=int((blocked & unsafe).sum()),
        missed=int((~blocked & unsafe).sum()),
        safe_actions=int(safe.sum()),
        wrongly_blocked=int((blocked & safe).sum()),
        all_blocked=int((~(applicable & ~blocked).any(axis=1)).sum()),
    )
