"""Torch state dicts: round trips, foreign files, and no pickles without leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import MlpPolicy, Scaling, load_policy, save_policy
from tests.oracles.policies import Names, random_network, random_states

torch = pytest.importorskip("torch")

TASK = Names(("v0", "v1", "v2"), ("a0", "a1"))
STATES = random_states(np.random.default_rng(1), 100, 3)


def _module(activation: Any) -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(3, 7), activation(), nn.Linear(7, 2, bias=False))


def _torch_scores(module: Any) -> Any:
    with torch.no_grad():
        return module(torch.tensor(STATES, dtype=torch.float32)).numpy()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_writing_reading_and_writing_gives_the_same_bytes_and_scores(
    activation: str, tmp_path: Path
) -> None:
    unit = Scaling.to_unit([-3.0] * 3, [11.0] * 3)
    policy = replace(
        random_network(np.random.default_rng(0), (3, 8, 5, 2), activation), scalings=(unit,)
    )
    save_policy(policy, tmp_path / "one.pt")
    again: Any = load_policy(tmp_path / "one.pt", TASK)
    save_policy(again, tmp_path / "two.pt")
    assert (tmp_path / "one.pt").read_bytes() == (tmp_path / "two.pt").read_bytes()
    sidecars = [(tmp_path / f"{name}.pt.interface.json").read_bytes() for name in ("one", "two")]
    assert sidecars[0] == sidecars[1]
    assert (again.scores(STATES) == policy.scores(STATES)).all()


def test_a_foreign_state_dict_needs_its_activation_said(tmp_path: Path) -> None:
    module = _module(torch.nn.Tanh)
    torch.save(module.state_dict(), tmp_path / "net.pth")
    with pytest.raises(PolicyError, match="pass activation="):
        load_policy(tmp_path / "net.pth", TASK)
    policy = load_policy(tmp_path / "net.pth", TASK, activation="tanh")
    assert isinstance(policy, MlpPolicy)
    np.testing.assert_allclose(policy.scores(STATES), _torch_scores(module), rtol=1e-5, atol=1e-6)


def test_a_pickled_module_is_loaded_only_with_leave(tmp_path: Path) -> None:
    module = _module(torch.nn.ReLU)
    torch.save(module, tmp_path / "net.pt")
    with pytest.raises(PolicyError, match="allow_pickle=True if you trust"):
        load_policy(tmp_path / "net.pt", TASK)
    policy = load_policy(tmp_path / "net.pt", TASK, allow_pickle=True)
    assert isinstance(policy, MlpPolicy)
    np.testing.assert_allclose(policy.scores(STATES), _torch_scores(module), rtol=1e-5, atol=1e-6)


def test_a_module_with_other_parts_is_refused(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())
    torch.save(module, tmp_path / "net.pt")
    with pytest.raises(PolicyError, match="Dropout"):
        load_policy(tmp_path / "net.pt", TASK, allow_pickle=True)


@pytest.mark.parametrize(
    ("key", "value"), [("encoder.weight", torch.zeros(2, 3)), ("0.weight", 3), (0, torch.zeros(2))]
)
def test_a_state_dict_with_other_parts_is_refused(key: Any, value: Any, tmp_path: Path) -> None:
    torch.save({key: value}, tmp_path / "net.pt")
    with pytest.raises(PolicyError, match=f"{key!r} is no part"):
        load_policy(tmp_path / "net.pt", TASK, activation="relu")


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x80\x02.", b"PK\x03\x04 nothing"])
def test_a_file_that_is_none_of_torch_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.pt").write_bytes(content)
    with pytest.raises(PolicyError, match=r"p\.pt"):
        load_policy(tmp_path / "p.pt", Names(("x",), ("a", "b")))
