"""XGBoost model files: exact round trips that XGBoost itself confirms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import Interface, TreeEnsemblePolicy, load_policy, save_policy
from safetest_gym.policies.xgboost_file import ensemble_document, policy_from_booster, to_booster
from tests.oracles.policies import Names, ensemble, interface, random_states, random_tree

xgboost = pytest.importorskip("xgboost")

TASK = Names(("v0", "v1", "v2"), ("a0", "a1"))
STATES = random_states(np.random.default_rng(1), 500, 3)


def _booster(**options: Any) -> Any:
    labels = (STATES[:, 0] * STATES[:, 1] > 9).astype(int)
    settings = {"objective": "multi:softprob", "num_class": 2, "nthread": 1, **options}
    return xgboost.train(settings, xgboost.DMatrix(STATES, labels), 6)


def _grown(vector: bool) -> TreeEnsemblePolicy:
    rng = np.random.default_rng(4)
    trees = [random_tree(rng, 3, 6, 2 if vector else 1, -1 if vector else i % 2) for i in range(6)]
    return ensemble(trees, [0.25, -1.5], interface(3, 2))


def _margins(booster: Any) -> Any:
    data = xgboost.DMatrix(STATES, feature_names=["v0", "v1", "v2"])
    return booster.predict(data, output_margin=True)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_writing_reading_and_writing_gives_the_same_bytes_and_margins(
    suffix: str, strategy: str, tmp_path: Path
) -> None:
    policy = policy_from_booster(
        _booster(multi_strategy=strategy, tree_method="hist"), interface(3, 2)
    )
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    save_policy(policy, one)
    again = load_policy(one, TASK)
    save_policy(again, two)
    assert one.read_bytes() == two.read_bytes()
    assert again.interface == Interface.of(TASK)
    loaded = xgboost.Booster()
    loaded.load_model(one)
    assert (_margins(loaded) == policy.scores(STATES)).all()


@pytest.mark.parametrize("vector", [False, True])
def test_trees_numbered_in_any_order_mean_the_same_to_xgboost(vector: bool) -> None:
    policy = _grown(vector)
    assert (_margins(to_booster(policy)) == policy.scores(STATES)).all()


def test_a_model_saved_by_xgboost_is_read(tmp_path: Path) -> None:
    booster = _booster()
    booster.save_model(tmp_path / "model.json")
    policy = load_policy(tmp_path / "model.json", TASK)
    wanted = booster.predict(xgboost.DMatrix(STATES), output_margin=True)
    assert isinstance(policy, TreeEnsemblePolicy)
    assert (policy.scores(STATES) == wanted).all()


def test_stored_names_are_bound_to_the_task_in_its_order(tmp_path: Path) -> None:
    policy = _grown(vector=False)
    save_policy(policy, tmp_path / "model.json")
    again = load_policy(tmp_path / "model.json", Names(("v2", "v1", "v0"), ("a1", "a0")))
    assert isinstance(again, TreeEnsemblePolicy)
    assert (again.scores(STATES[:, ::-1])[:, ::-1] == policy.scores(STATES)).all()


def test_a_model_for_other_actions_is_refused_with_the_difference(tmp_path: Path) -> None:
    save_policy(_grown(vector=False), tmp_path / "model.json")
    with pytest.raises(PolicyError, match="'a1' is not in the task"):
        load_policy(tmp_path / "model.json", Names(("v0", "v1", "v2"), ("a0", "b")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"booster": "dart"}, "'dart' is not supported"),
        ({"booster": "gblinear"}, "'gblinear' is not supported"),
    ],
)
def test_other_boosters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy_from_booster(_booster(**options), interface(3, 2))


def test_other_objectives_are_refused_with_advice() -> None:
    labels = (STATES[:, 0] > 3).astype(int)
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(STATES, labels), 2)
    with pytest.raises(PolicyError, match="train with multi:softprob"):
        policy_from_booster(booster, interface(3, 2))


def test_categorical_splits_are_refused() -> None:
    document = json.loads(json.dumps(ensemble_document(_grown(vector=False))))
    document["learner"]["gradient_booster"]["model"]["trees"][0]["split_type"][0] = 1
    from safetest_gym.policies.xgboost_file import policy_from_document

    with pytest.raises(PolicyError, match="categorical"):
        policy_from_document(document, None, None)


@pytest.mark.parametrize("outputs", [[0], [1, 1, 0], [0, 1, 1, 0, 1]])
def test_trees_of_any_classes_mean_the_same_to_xgboost(outputs: list[int], tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    trees = [random_tree(rng, 3, 4, 1, output) for output in outputs]
    policy = ensemble(trees, [0.5, 0.25], interface(3, 2))
    assert (_margins(to_booster(policy)) == policy.scores(STATES)).all()
    save_policy(policy, tmp_path / "model.ubj")
    again: Any = load_policy(tmp_path / "model.ubj", TASK)
    assert (again.scores(STATES) == policy.scores(STATES)).all()


def test_scalar_and_vector_leaves_in_one_ensemble_are_refused() -> None:
    rng = np.random.default_rng(2)
    trees = [random_tree(rng, 3, 2, 1, 0), random_tree(rng, 3, 2, 2)]
    with pytest.raises(PolicyError, match="cannot mix"):
        ensemble_document(ensemble(trees, [0, 0], interface(3, 2)))


def test_a_json_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"learner": 3}')
    with pytest.raises(PolicyError, match="not an XGBoost model"):
        load_policy(tmp_path / "model.json", TASK)
