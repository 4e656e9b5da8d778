"""Repairs fix every fault, as the policies themselves and XGBoost say."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.policies.xgboost_file import to_booster
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet, KeepSet
from tests.oracles.policies import random_network, random_states
from tests.repair.faulty import bad_decisions, faults_of, forest, taken


def _check_on_trees(method: Any, seed: int, variant: Any) -> int:
    """Repair one random ensemble, check it through XGBoost, return the new trees."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(seed)
    few = seed % 3 == 0
    policy = forest(seed, trees=1 if few else 8, nodes=1 if few else 8, vector=seed % 2 == 0)
    faults = faults_of(policy, seed, int(rng.integers(2, 40)))
    repaired, report = RepairOptions(method=method, variant=variant, work=0.2).run(policy, faults)
    assert report.all_fixed
    assert bad_decisions(repaired, faults, variant) == []
    states = np.concatenate([faults.states, random_states(rng, 50, 4)])
    data = xgboost.DMatrix(states.astype(np.float32), feature_names=["v0", "v1", "v2", "v3"])
    margins = to_booster(repaired).predict(data, output_margin=True)
    assert (margins == repaired.scores(states)).all()
    return report.trees_added


@pytest.mark.parametrize("variant", ["weak", "strong"])
@pytest.mark.parametrize("method", ["leaves", "penalty-trees"])
def test_every_fault_of_random_ensembles_is_fixed_as_xgboost_confirms(
    method: str, variant: str
) -> None:
    added = [_check_on_trees(method, seed, variant) for seed in range(12)]
    assert any(added)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["weak", "strong"])
@pytest.mark.parametrize("method", ["leaves", "penalty-trees"])
def test_every_fault_of_many_random_ensembles_is_fixed(method: str, variant: str) -> None:
    added = [_check_on_trees(method, seed, variant) for seed in range(100, 200)]
    assert sum(map(bool, added)) >= 10


def _check_on_networks(seed: int, variant: Any) -> None:
    policy = random_network(np.random.default_rng(seed), [4, 32, 24, 5], "tanh")
    faults = faults_of(policy, seed, 8)
    repaired, report = RepairOptions(method="last-layer", variant=variant, work=0.2).run(
        policy, faults
    )
    assert report.all_fixed
    assert bad_decisions(repaired, faults, variant) == []
    assert all(a is b for a, b in zip(policy.layers[:-1], repaired.layers[:-1], strict=True))


@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_every_fault_of_random_networks_is_fixed_by_the_last_layer(variant: str) -> None:
    for seed in range(10):
        _check_on_networks(seed, variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_every_fault_of_many_random_networks_is_fixed(variant: str) -> None:
    for seed in range(100, 200):
        _check_on_networks(seed, variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["weak", "strong"])
def test_every_fault_of_many_random_networks_is_fixed_by_gradient_steps(variant: str) -> None:
    for seed in range(100, 200):
        policy = random_network(np.random.default_rng(seed), [4, 32, 16, 5], "relu")
        faults = faults_of(policy, seed, 50)
        repaired, report = repair(policy, faults, method="finetune", variant=variant)  # type: ignore[arg-type]  # one of the two
        assert report.all_fixed
        assert bad_decisions(repaired, faults, variant) == []


def test_contradicting_faults_in_one_leaf_get_a_new_tree() -> None:
    policy = forest(1, trees=0, features=1, actions=2, vector=True)
    faults = FaultSet(
        states=np.array([[1], [2]]),
        actions=np.array([0, 1]),
        applicable=np.ones((2, 2), dtype=bool),
        safe=np.array([[False, True], [True, False]]),
    )
    repaired, report = repair(policy, faults, method="leaves")
    assert report.trees_added == 1
    assert taken(repaired, faults).tolist() == [1, 0]


def test_faults_that_conflict_only_through_several_leaves_get_a_new_tree() -> None:
    # Two trees, each splits on one variable; the demands are those of exclusive or.
    from tests.oracles.policies import ensemble, interface, tree

    parts = [
        tree([1, -1, -1], [2, -1, -1], [v, 0, 0], [0.5, 0, 0], np.zeros((3, 2))) for v in (0, 1)
    ]
    policy = ensemble(parts, [0.0, 0.0], interface(2, 2))
    wanted = np.array([0, 1, 1, 0])
    safe = np.eye(2, dtype=bool)[wanted]
    faults = FaultSet(
        states=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
        actions=1 - wanted,
        applicable=np.ones((4, 2), dtype=bool),
        safe=safe,
    )
    repaired, report = repair(policy, faults, method="leaves")
    assert report.trees_added == 1
    assert "cannot hold together" in report.notes[0]
    assert taken(repaired, faults).tolist() == wanted.tolist()


@pytest.mark.parametrize("method", ["leaves", "penalty-trees"])
def test_a_fault_without_a_safe_action_is_reported_and_the_others_are_fixed(method: Any) -> None:
    policy = forest(3, vector=True)
    faults = faults_of(policy, 3, 12)
    safe = faults.safe.copy()
    safe[2] = False
    hopeless = FaultSet(
        states=faults.states, actions=faults.actions, applicable=faults.applicable, safe=safe
    )
    _, report = repair(policy, hopeless, method=method)
    assert report.unfixable.tolist() == [2]
    assert np.flatnonzero(~report.fixed).tolist() == [2]


@pytest.mark.parametrize("method", ["leaves", "penalty-trees", "last-layer"])
def test_decisions_to_keep_are_kept(method: Any) -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng, [4, 64, 64, 4])
    policy = network if method == "last-layer" else forest(5, vector=True)
    faults = faults_of(policy, 5, 6)
    states = random_states(rng, 30, 4)
    applicable = np.ones((30, 4), dtype=bool)
    keep = KeepSet(states=states, applicable=applicable)
    repaired, report = repair(policy, faults, method=method, keep=keep)
    assert report.all_fixed
    assert report.kept.all()
    assert (policy.actions(states, applicable) == repaired.actions(states, applicable)).all()


def test_a_finite_penalty_keeps_less_and_changes_less() -> None:
    policy = forest(6, vector=True)
    faults = faults_of(policy, 6, 10)
    states = random_states(np.random.default_rng(6), 200, 4)
    applicable = np.ones((200, 4), dtype=bool)
    reports = {
        penalty: RepairOptions(method="leaves", work=2).run(
            policy, faults, KeepSet(states=states, applicable=applicable, penalty=penalty)
        )[1]
        for penalty in (0.01, 100.0)
    }
    assert all(report.all_fixed for report in reports.values())
    assert reports[0.01].kept.sum() < reports[100.0].kept.sum()


def test_penalty_trees_change_no_other_decision() -> None:
    policy = forest(8, vector=True)
    faults = faults_of(policy, 8, 30)
    repaired, _ = repair(policy, faults, method="penalty-trees")
    states = random_states(np.random.default_rng(1), 2000, 4)
    known = {tuple(state) for state in faults.states}
    other = np.array([tuple(state) not in known for state in states])
    assert (policy.scores(states[other]) == repaired.scores(states[other])).all()


@pytest.mark.parametrize("vector", [True, False])
def test_penalty_trees_tell_large_integers_apart_that_the_policy_can_tell_apart(
    vector: bool,
) -> None:
    policy = forest(1, vector=vector)
    found = faults_of(policy, 3, 30)
    faults = dataclasses.replace(found, states=found.states * 10**9 + 2**40)
    repaired, report = repair(policy, faults, method="penalty-trees")
    assert report.all_fixed
    assert bad_decisions(repaired, faults, "strong") == []


def test_impossible_limits_are_refused_when_they_are_given() -> None:
    with pytest.raises(ConfigError, match="work and time_limit must be positive"):
        RepairOptions(method="leaves", work=0)
    with pytest.raises(ConfigError, match="no method"):
        RepairOptions(method=()).require_fit(forest(1, vector=True))


def test_states_of_another_task_or_without_a_value_are_refused() -> None:
    policy = forest(1, vector=True)
    faults = faults_of(policy, 3, 30)
    narrow = dataclasses.replace(faults, states=faults.states[:, :2])
    with pytest.raises(ConfigError, match="the faults have 2 variables"):
        repair(policy, narrow, method="leaves")
    nothing = dataclasses.replace(faults, states=faults.states * np.nan)
    with pytest.raises(ConfigError, match="no finite numbers"):
        repair(policy, nothing, method="leaves")
    keep = KeepSet(states=faults.states, applicable=faults.applicable[:, :2])
    with pytest.raises(ConfigError, match="what to keep have 2 actions"):
        repair(policy, faults, method="leaves", keep=keep)


def test_a_repaired_ensemble_is_an_ordinary_classifier(tmp_path: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    from safetest_gym.policies import save_policy

    policy = forest(9, vector=True)
    faults = faults_of(policy, 9, 20)
    repaired, _ = repair(policy, faults, method="leaves")
    save_policy(repaired, tmp_path / "model.json")
    classifier = xgboost.XGBClassifier()
    classifier.load_model(tmp_path / "model.json")
    margins = classifier.predict(faults.states.astype(np.float32), output_margin=True)
    assert (margins == repaired.scores(faults.states)).all()


def test_without_faults_nothing_changes() -> None:
    policy = forest(1, vector=True)
    none = faults_of(policy, 1, 0)
    repaired, report = repair(policy, none, method="leaves")
    assert report.changed == 0
    assert repaired.trees == policy.trees


def test_a_network_with_contradicting_faults_is_refused_with_their_rows() -> None:
    policy = random_network(np.random.default_rng(2), [1, 2, 2])
    grid = np.arange(-40, 40)[:, None]
    applicable = np.ones((80, 2), dtype=bool)
    actions = policy.actions(grid, applicable)
    safe = np.zeros((80, 2), dtype=bool)
    wanted = np.arange(80) % 2
    safe[np.arange(80), wanted] = True
    wrong = actions != wanted
    faults = FaultSet(
        states=grid[wrong], actions=actions[wrong], applicable=applicable[wrong], safe=safe[wrong]
    )
    keep = KeepSet(states=grid[~wrong], applicable=applicable[~wrong])
    with pytest.raises(RepairError, match="no change of the last layer") as raised:
        repair(policy, faults, method="last-layer", keep=keep)
    assert len(raised.value.faults)


def test_a_method_for_another_kind_of_policy_is_refused() -> None:
    policy = forest(1, vector=True)
    with pytest.raises(ConfigError, match="last-layer repairs networks"):
        repair(policy, faults_of(policy, 1, 5), method="last-layer")


def test_the_report_is_plain_data_and_text() -> None:
    policy = forest(1, vector=True)
    _, report = repair(policy, faults_of(policy, 1, 5), method="leaves")
    data = report.as_dict()
    assert data["fixed"] == data["faults"]
    assert 0 <= data["lower_bound"] <= data["objective"] + 1e-9
    assert "faults fixed" in report.describe()
