"""A small JSON file beside a policy's file: what the format itself has no room for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import Activation
from safetest_gym.policies.scaling import Scaling
from safetest_gym.replacing import replace_file

__all__ = ["Sidecar", "read_sidecar", "sidecar_path", "write_sidecar"]

_FORMAT = "safetest-gym policy 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sidecar:
    """Names, input scaling and (for networks) the activation of each layer."""

    interface: Interface
    scalings: tuple[Scaling, ...] = ()
    activations: tuple[Activation, ...] = ()


def sidecar_path(path: Path) -> Path:
    """Where the sidecar of a policy file is: its name with ``.interface.json`` added."""
    return path.with_name(path.name + ".interface.json")


def write_sidecar(path: Path, sidecar: Sidecar) -> None:
    """Write the sidecar of the policy file ``path``."""
    data = {
        "format": _FORMAT,
        "variables": list(sidecar.interface.variables),
        "actions": list(sidecar.interface.actions),
        "activations": list(sidecar.activations),
        "scalings": [scaling.as_json() for scaling in sidecar.scalings],
    }
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(sidecar_path(path), lambda fresh: fresh.write_text(text + "\n", encoding="utf-8"))


def read_sidecar(path: Path) -> Sidecar | None:
    """Read the sidecar of the policy file ``path``, None if it has none."""
    beside = sidecar_path(path)
    if not beside.exists():
        return None
    try:
        data = json.loads(beside.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            raise PolicyError(f"{beside}: format {data['format']!r}, expected {_FORMAT!r}")
        activations = tuple(data["activations"])
        if not set(activations) <= set(get_args(Activation)):
            raise PolicyError(f"{beside}: unknown activations {activations}")
        return Sidecar(
            interface=Interface(tuple(data["variables"]), tuple(data["actions"])),
            scalings=tuple(Scaling.from_json(entry) for entry in data["scalings"]),
            activations=activations,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, PolicyError):
            raise
        raise PolicyError(f"{beside} is no sidecar of a policy: {error!r}") from error
