"""Tree ensembles to and from XGBoost's model document (JSON or UBJ), bit for bit.

The interface travels in the booster's attributes and feature names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.trees import VECTOR, Tree, TreeEnsemblePolicy
from safetest_gym.replacing import replace_file

__all__ = [
    "ensemble_document",
    "policy_from_booster",
    "policy_from_document",
    "read_xgboost",
    "to_booster",
    "write_xgboost",
]

_ATTRIBUTE = "safetest_gym_actions"
_OBJECTIVES = ("multi:softprob", "multi:softmax")
_NO_PARENT = 2**31 - 1


def read_xgboost(path: Path, interface: Interface | None, default: Interface | None) -> Any:
    """Read a ``.json`` or ``.ubj`` model; see `policy_from_document` for the interfaces."""
    if path.suffix == ".json":
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise PolicyError(f"{path}: not JSON: {error}") from error
    else:
        import xgboost

        booster = xgboost.Booster()
        try:
            booster.load_model(path)
        except (xgboost.core.XGBoostError, UnicodeDecodeError) as error:
            raise PolicyError(f"{path}: XGBoost cannot read it: {error}") from error
        document = _document_of(booster)
    return policy_from_document(document, interface, default)


def write_xgboost(policy: TreeEnsemblePolicy, path: Path) -> None:
    """Write a model file that XGBoost 3 loads; ``.json`` or ``.ubj`` by the suffix."""
    if path.suffix == ".json":
        document = json.dumps(ensemble_document(policy), separators=(",", ":"), sort_keys=True)
        content = document.encode()
    else:
        content = bytes(to_booster(policy).save_raw("ubj"))
    replace_file(path, lambda fresh: fresh.write_bytes(content))


def to_booster(policy: TreeEnsemblePolicy) -> Any:
    """An ``xgboost.Booster`` with exactly this policy's margins."""
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps(ensemble_document(policy)).encode()))
    return booster


def policy_from_booster(booster: Any, interface: Interface) -> TreeEnsemblePolicy:
    """The policy of a trained ``xgboost.Booster`` whose classes are the interface's actions."""
    return policy_from_document(_document_of(booster), interface, None)


def policy_from_document(
    document: Mapping[str, Any], interface: Interface | None, default: Interface | None
) -> TreeEnsemblePolicy:
    """Read a model document.

    Args:
        interface: names to use; None takes the file's own.
        default: names to use where the file has none either.

    Raises:
        PolicyError: not a multi-class tree ensemble, or one with features we cannot
            reproduce (categorical splits, dart, linear boosters).
    """
    try:
        learner = document["learner"]
        _check_kind(learner)
        named = interface or _stored_interface(learner, default)
        outputs = int(learner["learner_model_param"]["num_class"])
        if outputs != named.num_actions:
            raise PolicyError(
                f"the model has {outputs} classes, the interface {named.num_actions} actions: "
                f"{', '.join(named.actions)}"
            )
        base = np.array(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float32)
        model = learner["gradient_booster"]["model"]
        trees = tuple(
            _tree(data, int(output), outputs)
            for data, output in zip(model["trees"], model["tree_info"], strict=True)
        )
        return TreeEnsemblePolicy(trees, np.broadcast_to(base, outputs), named)
    except PolicyError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise PolicyError(f"not an XGBoost model document: {error!r}") from error


def _document_of(booster: Any) -> Any:
    return json.loads(bytes(booster.save_raw("json")))


def _check_kind(learner: Mapping[str, Any]) -> None:
    booster = learner["gradient_booster"]["name"]
    if booster != "gbtree":
        raise PolicyError(f"booster {booster!r} is not supported, only gbtree")
    objective = learner["objective"]["name"]
    if objective not in _OBJECTIVES:
        raise PolicyError(
            f"objective {objective!r} is not supported (one class per action is needed: train "
            f"with {' or '.join(_OBJECTIVES)}, also for two actions)"
        )


def _stored_interface(learner: Mapping[str, Any], default: Interface | None) -> Interface:
    stored = learner.get("attributes", {}).get(_ATTRIBUTE)
    actions = tuple(json.loads(stored)) if stored else None
    variables = tuple(learner.get("feature_names") or ()) or None
    if default is not None:
        actions, variables = actions or default.actions, variables or default.variables
    if actions is None or variables is None:
        raise PolicyError("the model does not name its variables and actions; give an interface")
    return Interface(variables, actions)


def _tree(data: Mapping[str, Any], output: int, outputs: int) -> Tree:
    if data["categories"] or any(data["split_type"]):
        raise PolicyError("categorical splits are not supported; train on plain numbers")
    left = np.array(data["left_children"], dtype=np.int32)
    leaf = left < 0
    right = np.array(data["right_children"], dtype=np.int32)
    conditions = np.array(data["split_conditions"], dtype=np.float32)
    width = int(data["tree_param"]["size_leaf_vector"])
    if width > 1:
        weights = np.array(data["leaf_weights"], dtype=np.float32).reshape(-1, outputs)
        values = np.zeros((len(left), outputs), dtype=np.float32)
        values[leaf] = weights[right[leaf]]
        output = VECTOR
    else:
        values = np.where(leaf, conditions, np.float32(0))[:, None]
    return Tree(
        left=left,
        right=np.where(leaf, np.int32(-1), right),
        feature=np.where(leaf, 0, np.array(data["split_indices"], dtype=np.int32)),
        threshold=np.where(leaf, np.float32(0), conditions),
        values=values,
        output=output,
        gain=np.array(data["loss_changes"], dtype=np.float32),
        cover=np.array(data["sum_hessian"], dtype=np.float32),
    )


def ensemble_document(policy: TreeEnsemblePolicy) -> dict[str, Any]:
    """The policy as an XGBoost 3 model document."""
    outputs, features = policy.interface.num_actions, len(policy.interface.variables)
    vector = [tree.output == VECTOR for tree in policy.trees]
    if any(vector) and not all(vector):
        raise PolicyError("XGBoost cannot mix trees of one output with vector-leaf trees")
    # Rounds of one tree per class, as far as they go; XGBoost takes a shorter last one.
    count, per_round = len(policy.trees), 1 if any(vector) else outputs
    rounds = [*range(0, count + 1, per_round)]
    return {
        "learner": {
            "attributes": {_ATTRIBUTE: json.dumps(policy.interface.actions)},
            "feature_names": list(policy.interface.variables),
            "feature_types": [],
            "gradient_booster": {
                "model": {
                    "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
                    "gbtree_model_param": {
                        "num_parallel_tree": "1",
                        "num_trees": str(count),
                    },
                    "iteration_indptr": rounds if rounds[-1] == count else [*rounds, count],
                    "tree_info": [max(tree.output, 0) for tree in policy.trees],
                    "trees": [_tree_data(t, i, features) for i, t in enumerate(policy.trees)],
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": json.dumps(_shortest(policy.base_scores)),
                "boost_from_average": "1",
                "num_class": str(outputs),
                "num_feature": str(features),
                "num_target": "1",
            },
            "objective": {
                "name": "multi:softprob",
                "softmax_multiclass_param": {"num_class": str(outputs)},
            },
        },
        "version": [3, 0, 0],
    }


def _tree_data(tree: Tree, number: int, features: int) -> dict[str, Any]:
    """One tree, nodes renumbered breadth-first: XGBoost takes left + 1 for the right child."""
    assert tree.gain is not None
    assert tree.cover is not None
    order, _ = tree.breadth_first()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    leaf, values = tree.is_leaf[order], tree.values[order]
    left = np.where(leaf, -1, place[tree.left[order]])
    right = np.where(leaf, -1, place[tree.right[order]])
    parents = np.full(len(order), _NO_PARENT, dtype=np.int64)
    for children in (left, right):
        parents[children[~leaf]] = np.flatnonzero(~leaf)
    vector = tree.output == VECTOR
    if vector:
        parents[0] = -1
        right[leaf] = np.arange(leaf.sum())
    zeros = [0] * len(order)
    scalars = values[:, 0] if not vector else np.zeros(len(order), np.float32)
    data = {
        "base_weights": _shortest(np.where(leaf[:, None], values, np.float32(0)).ravel()),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": zeros,
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": _shortest(tree.gain[order]),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _shortest(np.where(leaf, scalars, tree.threshold[order])),
        "split_indices": np.where(leaf, 0, tree.feature[order]).tolist(),
        "split_type": zeros,
        "sum_hessian": _shortest(tree.cover[order]),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(features),
            "num_nodes": str(len(order)),
            "size_leaf_vector": str(values.shape[1]),
        },
    }
    if vector:
        data["leaf_weights"] = _shortest(values[leaf].ravel())
    return data


def _shortest(values: NDArray[np.float32]) -> list[float]:
    """Floats whose text is the shortest that reads back as the same float32."""
    return [float(str(value)) for value in values.astype(np.float32)]
