"""Policy files by suffix, their names, and what cannot be loaded or saved."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import (
    CallablePolicy,
    Interface,
    RandomPolicy,
    TablePolicy,
    TreeEnsemblePolicy,
    load_policy,
    read_vec_normalize,
    save_policy,
)
from tests.oracles.policies import Names, interface, random_network

TASK = Names(("v0", "v1"), ("a0", "a1"))


def test_tables_are_written_read_and_written_to_the_same_bytes(tmp_path: Path) -> None:
    table = TablePolicy.from_dict({(1, 2): "a1", (3, 4): "a0"}, interface(2, 2))
    save_policy(table, tmp_path / "one.npz")
    again = load_policy(tmp_path / "one.npz", TASK)
    assert isinstance(again, TablePolicy)
    save_policy(again, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert dict(again.items()) == dict(table.items())


def test_an_interface_given_replaces_the_stored_one(tmp_path: Path) -> None:
    save_policy(random_network(np.random.default_rng(0), (2, 2)), tmp_path / "net.nnet")
    names = Interface(("speed", "place"), ("stop", "go"))
    task = Names(("place", "speed", "other"), ("go", "stop"))
    policy = load_policy(tmp_path / "net.nnet", task, names)
    assert policy.interface.columns == (1, 0)
    assert policy.interface.numbers == (1, 0)


def test_a_policy_made_for_other_variables_is_refused_with_the_difference(tmp_path: Path) -> None:
    save_policy(random_network(np.random.default_rng(0), (2, 2)), tmp_path / "net.nnet")
    with pytest.raises(PolicyError, match="'v1' is not in the task"):
        load_policy(tmp_path / "net.nnet", Names(("v0", "w"), ("a0", "a1")))


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="there is no policy file"):
        load_policy(tmp_path / "net.nnet", TASK)


def test_a_folder_is_told_from_a_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"is a folder; give a policy file, such as .*model\.zip"):
        load_policy(tmp_path, TASK)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").touch()
    with pytest.raises(PolicyError, match=r"\.jani2nnet, \.json, \.nnet, \.npz"):
        load_policy(tmp_path / "net.onnx", TASK)


def test_scalings_for_a_table_are_refused(tmp_path: Path) -> None:
    save_policy(TablePolicy.from_dict({(1, 2): "a1"}, interface(2, 2)), tmp_path / "one.npz")
    with pytest.raises(PolicyError, match="networks only"):
        load_policy(tmp_path / "one.npz", TASK, scalings=[])


@pytest.mark.parametrize(
    "policy",
    [CallablePolicy(lambda s, a: a[0], interface(1, 1)), RandomPolicy(interface(1, 1))],
)
def test_policies_without_a_file_format_say_so(
    policy: CallablePolicy | RandomPolicy, tmp_path: Path
) -> None:
    with pytest.raises(PolicyError, match="no file format"):
        save_policy(policy, tmp_path / "policy.pt")


def test_a_network_in_a_tree_format_is_refused_with_its_own_formats(tmp_path: Path) -> None:
    policy = random_network(np.random.default_rng(0), (2, 2))
    with pytest.raises(PolicyError, match=r"it goes into: \.nnet, \.pt"):
        save_policy(policy, tmp_path / "policy.json")


def test_saved_vec_normalize_statistics_need_leave_to_unpickle(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from tests.oracles.masked_env import MaskedLine

    normalize = VecNormalize(DummyVecEnv([MaskedLine]))
    normalize.reset()
    normalize.save(str(tmp_path / "statistics.pkl"))
    with pytest.raises(PolicyError, match="allow_pickle=True"):
        read_vec_normalize(tmp_path / "statistics.pkl", allow_pickle=False)
    scaling = read_vec_normalize(tmp_path / "statistics.pkl", allow_pickle=True)[-1]
    rows = np.array([[3.0, 1.0, 1.0]], dtype=np.float32)
    assert (scaling(rows) == normalize.normalize_obs(rows)).all()


def test_importing_policies_loads_no_learner_no_library_and_no_numba() -> None:
    code = (
        "import sys, safetest_gym.policies as p; p.load_policy, p.MlpPolicy, p.policy_from_sb3;"
        "print(sorted({'torch', 'stable_baselines3', 'xgboost', 'numba'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("suffix", [".nnet", ".jani2nnet", ".pt", ".zip", ".npz", ".json", ".ubj"])
@pytest.mark.parametrize(
    "raw",
    [b"", b"garbage", b"PK\x03\x04", b"{}", b"null", b"\x80\x04K\x01.", b"inf,inf,inf\ninf,inf\n"],
)
def test_whatever_a_file_holds_it_is_a_policy_or_a_policy_error(
    raw: bytes, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"policy{suffix}"
    file.write_bytes(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch comments on pickle protocols
        with pytest.raises(PolicyError):
            load_policy(file, TASK)


@pytest.mark.parametrize("suffix", [".nnet", ".pt", ".npz", ".json"])
def test_a_file_cut_short_is_refused(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"policy{suffix}"
    policies = {
        ".npz": TablePolicy.from_dict({(1, 2): "a1"}, interface(2, 2)),
        ".json": TreeEnsemblePolicy((), np.zeros(2, np.float32), interface(2, 2)),
    }
    save_policy(policies.get(suffix, random_network(np.random.default_rng(0), (2, 2))), file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(PolicyError):
        load_policy(file, TASK)


def test_an_array_is_no_table(tmp_path: Path) -> None:
    with (tmp_path / "table.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(PolicyError, match="no table policy"):
        load_policy(tmp_path / "table.npz", TASK)


def test_a_policy_that_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "table.npz"
    save_policy(TablePolicy.from_dict({(1, 2): "a1"}, interface(2, 2)), target)
    before = target.read_bytes()

    def full(file: Path, **_: object) -> None:
        file.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        save_policy(TablePolicy.from_dict({(1, 2): "a0"}, interface(2, 2)), target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]
