"""NNet text and jani2nnet files: exact round trips, foreign files, clear refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.errors import PolicyError
from safetest_gym.policies import Interface, MlpPolicy, Scaling, load_policy, save_policy
from safetest_gym.policies.nnet import read_jani2nnet, read_nnet
from tests.oracles.policies import Names, random_network, random_states

TASK = Names(("v0", "v1", "v2"), ("a0", "a1"))
FOREIGN = """// two inputs, one hidden layer of two, two outputs
//
2,2,2,2,
2,2,2,
0,
0,-1,
10,1,
5,0,0,
10,2,1,
1,-1,
0.5,2,
0.25,
-0.5,
1,0,
0,1,
0,
1,
"""


def _policy(seed: int = 0) -> MlpPolicy:
    return random_network(np.random.default_rng(seed), (3, 8, 5, 2))


def _read(folder: Path, text: str) -> MlpPolicy:
    path = folder / "network.nnet"
    path.write_text(text)
    layers, scalings = read_nnet(path)
    names = Interface(("v0", "v1"), ("a0", "a1"))
    return MlpPolicy(layers, names, scalings)


@given(seed=st.integers(0, 2**32), scaled=st.sampled_from(["plain", "unit", "vec", "both"]))
def test_writing_reading_and_writing_gives_the_same_bytes_and_scores(
    tmp_path_factory: pytest.TempPathFactory, seed: int, scaled: str
) -> None:
    rng = np.random.default_rng(seed)
    unit = Scaling.to_unit(rng.normal(size=3) - 5, rng.normal(size=3) + 5)
    vec = Scaling.affine(rng.normal(size=3), rng.random(3) + 0.1, clip=3)
    steps = {
        "plain": (), "unit": (unit,), "vec": (Scaling.rounding(3), vec), "both": (unit, vec),
    }[scaled]  # fmt: skip
    policy = replace(_policy(seed), scalings=steps)
    folder = tmp_path_factory.mktemp("nnet")
    save_policy(policy, folder / "one.nnet")
    again: Any = load_policy(folder / "one.nnet", TASK)
    save_policy(again, folder / "two.nnet")
    assert (folder / "one.nnet").read_bytes() == (folder / "two.nnet").read_bytes()
    states = rng.normal(size=(200, 3)) * 5
    assert (again.scores(states) == policy.scores(states)).all()


def test_the_rows_that_other_tools_read_say_the_same_scaling(tmp_path: Path) -> None:
    unit = Scaling.to_unit([0.0, 0.0, 0.0], [7.0, 9.0, 11.0])
    vec = Scaling.affine([0.3, -0.2, 0.1], [0.7, 0.8, 0.9], clip=2)
    policy = replace(_policy(), scalings=(unit, vec))
    save_policy(policy, tmp_path / "one.nnet")
    lines = (tmp_path / "one.nnet").read_text().splitlines()
    (tmp_path / "two.nnet").write_text("\n".join(s for s in lines if not s.startswith("//")))
    layers, scalings = read_nnet(tmp_path / "two.nnet")
    assert len(scalings) == 1
    states = random_states(np.random.default_rng(0), 100, 3)
    foreign = MlpPolicy(layers, policy.interface, scalings).scores(states)
    np.testing.assert_allclose(foreign, policy.scores(states), rtol=1e-5, atol=1e-6)


def test_a_foreign_file_is_clipped_scaled_and_run_with_relu(tmp_path: Path) -> None:
    # (20, 0.5): clipped to (10, 0.5), scaled to (0.5, 0.25); hidden (0.5, 0.25).
    assert _read(tmp_path, FOREIGN).scores(np.array([[20, 0.5]])).tolist() == [[0.5, 1.25]]


def test_rows_changed_by_another_tool_win_over_our_comment(tmp_path: Path) -> None:
    policy = replace(_policy(), scalings=(Scaling.affine([1.0, 2.0, 3.0], 4.0),))
    save_policy(policy, tmp_path / "one.nnet")
    text = (tmp_path / "one.nnet").read_text()
    changed = text.replace("\n1.0,2.0,3.0,0.0,", "\n1.0,2.0,9.0,0.0,")
    (tmp_path / "one.nnet").write_text(changed)
    assert read_nnet(tmp_path / "one.nnet")[1][0].shift.tolist() == [1, 2, 9]


def test_an_output_range_is_folded_into_the_last_layer(tmp_path: Path) -> None:
    text = FOREIGN.replace("5,0,0,\n10,2,1,", "5,0,3,\n10,2,2,")
    assert _read(tmp_path, text).scores(np.array([[20, 0.5]])).tolist() == [[4.0, 5.5]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2,2,2,2,", "3,2,2,2,", "layer sizes"),
        ("1,-1,", "1,", "no NNet file"),
        ("0.25,", "x,", "line 12"),
        ("10,2,1,", "0,2,1,", "ranges must be positive"),
        ("1,\n", "", "ends early"),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    head, _, tail = FOREIGN.rpartition(old) if old == "1,\n" else FOREIGN.partition(old)
    with pytest.raises(PolicyError, match=message):
        _read(tmp_path, head + new + tail)


def test_tanh_networks_are_refused(tmp_path: Path) -> None:
    policy = random_network(np.random.default_rng(0), (3, 4, 2), "tanh")
    with pytest.raises(PolicyError, match="ReLU networks only"):
        save_policy(policy, tmp_path / "one.nnet")


def test_scaling_after_clipping_is_refused(tmp_path: Path) -> None:
    step = Scaling.affine([0.0] * 3, 1.0, clip=1)
    with pytest.raises(PolicyError, match="clip"):
        save_policy(replace(_policy(), scalings=(step, step)), tmp_path / "one.nnet")


def test_the_interface_is_written_as_jani2nnet(tmp_path: Path) -> None:
    names = Interface(("x", "robot.speed", "z"), ("go", "stop"))
    save_policy(replace(_policy(), interface=names), tmp_path / "one.nnet")
    assert json.loads((tmp_path / "one.jani2nnet").read_text()) == {
        "elements": [8, 5],
        "file": "one.nnet",
        "filter": False,
        "input": [
            {"automaton": None, "name": "x"},
            {"automaton": "robot", "name": "speed"},
            {"automaton": None, "name": "z"},
        ],
        "output": ["go", "stop"],
    }
    assert read_jani2nnet(tmp_path / "one.jani2nnet") == (names, "one.nnet")


def test_a_policy_is_loaded_by_its_interface_file_too(tmp_path: Path) -> None:
    save_policy(_policy(), tmp_path / "one.nnet")
    (tmp_path / "one.jani2nnet").rename(tmp_path / "other.jani2nnet")
    policy = load_policy(tmp_path / "other.jani2nnet", TASK)
    assert policy.interface.variables == TASK.names


@pytest.mark.parametrize("name", ["one_way_line_15_10_128_128", "beluga_4_2_128_128"])
def test_published_interface_files_are_written_as_they_were_read(
    name: str, shared: Path, tmp_path: Path
) -> None:
    source = shared / "models" / "planning" / f"{name}.jani2nnet"
    names, network = read_jani2nnet(source)
    sizes = (len(names.variables), *json.loads(source.read_text())["elements"], names.num_actions)
    policy = replace(random_network(np.random.default_rng(0), sizes), interface=names)
    save_policy(policy, tmp_path / network)
    assert (tmp_path / f"{name}.jani2nnet").read_bytes() == source.read_bytes()


def test_a_jani2nnet_file_without_outputs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.jani2nnet").write_text('{"input": [], "file": "x"}')
    with pytest.raises(PolicyError, match="no jani2nnet file"):
        read_jani2nnet(tmp_path / "one.jani2nnet")
