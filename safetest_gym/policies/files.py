"""Policies from and to files; the suffix says the format.

``.zip`` Stable-Baselines3 (read only), ``.nnet`` and ``.jani2nnet``, ``.pt`` / ``.pth``
torch state dicts, ``.json`` / ``.ubj`` XGBoost, ``.npz`` tables. Nothing is unpickled
unless ``allow_pickle`` is given.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.mlp import Activation, Layer, MlpPolicy
from safetest_gym.policies.nnet import read_jani2nnet, read_nnet, write_jani2nnet, write_nnet
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.scaling import Scaling
from safetest_gym.policies.sidecar import Sidecar, read_sidecar, write_sidecar
from safetest_gym.policies.table import TablePolicy
from safetest_gym.policies.trees import TreeEnsemblePolicy
from safetest_gym.policies.xgboost_file import read_xgboost, write_xgboost
from safetest_gym.replacing import replace_file

__all__ = ["load_policy", "read_vec_normalize", "save_policy"]

_NETWORKS = (".jani2nnet", ".nnet", ".pt", ".pth", ".zip")
_ENSEMBLES = (".json", ".ubj")


def load_policy(
    path: str | Path,
    task: TaskNames,
    interface: Interface | None = None,
    *,
    activation: Activation | None = None,
    scalings: Sequence[Scaling] | None = None,
    allow_pickle: bool = False,
) -> MlpPolicy | TreeEnsemblePolicy | TablePolicy:
    """Read a policy and bind it to ``task``.

    Args:
        interface: variables and actions it was made for; by default what the file or the
            file beside it says, else all of the task's in order.
        activation: of a foreign state dict, which does not say it.
        scalings: input scaling of a foreign network, e.g. `read_vec_normalize`'s.
        allow_pickle: load a whole torch module from ``.pt``; this can run foreign code.

    Raises:
        PolicyError: the file cannot be reproduced exactly, or was made for another task;
            the message lists the difference.
    """
    source = Path(path)
    if source.is_dir():
        raise PolicyError(f"{source} is a folder; give a policy file, such as {source}/model.zip")
    if not source.is_file():
        raise PolicyError(f"there is no policy file {source}")
    if source.suffix not in _NETWORKS and (activation is not None or scalings is not None):
        raise PolicyError(f"{source}: activation and scalings are for networks only")
    if source.suffix in _ENSEMBLES:
        ensemble: TreeEnsemblePolicy = read_xgboost(source, interface, Interface.of(task))
        return ensemble.bind(task)
    if source.suffix == ".npz":
        return _read_table(source, interface).bind(task)
    beside = _names_beside(source)
    if source.suffix in (".nnet", ".jani2nnet"):
        layers, stored = read_nnet(_network_of(source))
    elif source.suffix in (".pt", ".pth"):
        layers, stored = _read_torch(source, beside, activation, allow_pickle=allow_pickle)
    elif source.suffix == ".zip":
        from safetest_gym.policies.sb3_zip import read_sb3_layers

        layers, stored = read_sb3_layers(source), beside.scalings if beside else ()
    else:
        known = ", ".join(sorted((*_NETWORKS, *_ENSEMBLES, ".npz")))
        raise PolicyError(f"{source}: unknown kind of policy file, expected one of {known}")
    names = interface or (beside.interface if beside else Interface.of(task))
    steps = stored if scalings is None else tuple(scalings)
    return MlpPolicy(layers, names, steps).bind(task)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy so that `load_policy` gives the same one back.

    Raises:
        PolicyError: the format cannot hold the policy, or no format can (Python functions,
            custom SB3 networks: use the model's own ``save``).
    """
    target = Path(path)
    if isinstance(policy, MlpPolicy) and target.suffix == ".nnet":
        write_nnet(policy, target)
        write_jani2nnet(policy, target.with_suffix(".jani2nnet"), target.name)
    elif isinstance(policy, MlpPolicy) and target.suffix in (".pt", ".pth"):
        from safetest_gym.policies.torch_file import write_torch

        write_torch(policy, target)
        activations = tuple(layer.activation for layer in policy.layers)
        sidecar = Sidecar(
            interface=policy.interface, scalings=policy.scalings, activations=activations
        )
        write_sidecar(target, sidecar)
    elif isinstance(policy, TreeEnsemblePolicy) and target.suffix in _ENSEMBLES:
        write_xgboost(policy, target)
    elif isinstance(policy, TablePolicy) and target.suffix == ".npz":
        _write_table(policy, target)
    else:
        suffixes = {
            MlpPolicy: ".nnet, .pt",
            TreeEnsemblePolicy: ".json, .ubj",
            TablePolicy: ".npz",
        }
        known = suffixes.get(type(policy), "no file format")
        raise PolicyError(
            f"{target}: a {type(policy).__name__} cannot be saved there, it goes into: {known}"
        )


def read_vec_normalize(path: str | Path, *, allow_pickle: bool) -> tuple[Scaling, ...]:
    """Scalings of a network trained under the VecNormalize saved at ``path``.

    SB3 pickles these statistics, so this needs ``allow_pickle=True``: it can run foreign
    code. For environments whose observations are the raw state values.
    """
    if not allow_pickle:
        raise PolicyError(
            f"{path}: VecNormalize statistics are a pickle, and loading one can run foreign "
            "code; pass allow_pickle=True if you trust the file"
        )
    import pickle

    from stable_baselines3.common.vec_env import VecNormalize

    from safetest_gym.policies.sb3 import vec_normalize_scaling

    with Path(path).open("rb") as file:
        normalize = pickle.load(file)
    if not isinstance(normalize, VecNormalize):
        raise PolicyError(f"{path} holds a {type(normalize).__name__}, not a VecNormalize")
    scaling = vec_normalize_scaling(normalize)
    return (Scaling.rounding(len(scaling.shift)), scaling)


def _names_beside(source: Path) -> Sidecar | None:
    if source.suffix in (".nnet", ".jani2nnet"):
        names = source.with_suffix(".jani2nnet")
        return Sidecar(interface=read_jani2nnet(names)[0]) if names.is_file() else None
    return read_sidecar(source)


def _network_of(source: Path) -> Path:
    if source.suffix == ".nnet":
        return source
    network = source.parent / read_jani2nnet(source)[1]
    if not network.is_file():
        raise PolicyError(f"{source} names the network {network.name}, which is not beside it")
    return network


def _read_torch(
    source: Path, beside: Sidecar | None, activation: Activation | None, *, allow_pickle: bool
) -> tuple[tuple[Layer, ...], tuple[Scaling, ...]]:
    from safetest_gym.policies.torch_file import read_torch

    known: Any = activation
    if activation is None and beside and beside.activations:
        known = beside.activations
    layers = read_torch(source, known, allow_pickle=allow_pickle)
    return layers, beside.scalings if beside else ()


def _write_table(policy: TablePolicy, target: Path) -> None:
    replace_file(
        target,
        lambda fresh: np.savez(
            fresh,
            rows=policy.rows,
            chosen=policy.chosen,
            variables=np.array(policy.interface.variables),
            actions=np.array(policy.interface.actions),
        ),
    )


def _read_table(source: Path, interface: Interface | None) -> TablePolicy:
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as data:
            stored = Interface(tuple(data["variables"].tolist()), tuple(data["actions"].tolist()))
            return TablePolicy(data["rows"], data["chosen"], interface or stored)
    except PolicyError:
        raise
    except (EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise PolicyError(f"{source} is no table policy: {error}") from error
