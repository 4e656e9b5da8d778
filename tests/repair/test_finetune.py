"""Gradient steps fix every fault, always the same way, and say so when they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.policies import MlpPolicy
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet, KeepSet
from tests.oracles.policies import random_network
from tests.repair.faulty import bad_decisions, faults_of


def _network(seed: int, activation: str = "relu") -> MlpPolicy:
    return random_network(np.random.default_rng(seed), [4, 24, 16, 5], activation)


def alternating() -> tuple[MlpPolicy, FaultSet]:
    """Faults on a grid of one variable that no last layer of two units can fix together."""
    policy = random_network(np.random.default_rng(2), [1, 2, 2])
    grid = np.array([[0], [10], [20], [30]])
    wanted = np.array([0, 1, 0, 1])
    safe = np.eye(2, dtype=bool)[wanted]
    faults = FaultSet(
        states=grid, actions=1 - wanted, applicable=np.ones((4, 2), dtype=bool), safe=safe
    )
    return policy, faults


@pytest.mark.parametrize("variant", ["weak", "strong"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_every_fault_of_random_networks_is_fixed(activation: str, variant: str) -> None:
    for seed in range(3):
        policy = _network(seed, activation)
        faults = faults_of(policy, seed, 30)
        repaired, report = repair(policy, faults, method="finetune", variant=variant)  # type: ignore[arg-type]  # one of the two
        assert report.all_fixed
        assert report.algorithm == "gradient"
        assert bad_decisions(repaired, faults, variant) == []


def test_the_same_faults_give_the_same_weights_whatever_torch_drew_before() -> None:
    import torch

    policy = _network(1)
    faults = faults_of(policy, 1, 20)
    first, _ = repair(policy, faults, method="finetune")
    state = torch.random.get_rng_state()
    torch.rand(3)
    again, _ = repair(policy, faults, method="finetune")
    torch.random.set_rng_state(state)
    for one, other in zip(first.layers, again.layers, strict=True):
        assert (one.weight == other.weight).all()
        assert (one.bias == other.bias).all()


def test_torchs_random_state_is_left_alone() -> None:
    import torch

    policy = _network(1)
    before = torch.random.get_rng_state()
    repair(policy, faults_of(policy, 1, 20), method="finetune")
    assert (torch.random.get_rng_state() == before).all()


def test_decisions_to_keep_are_kept() -> None:
    policy = _network(5)
    faults = faults_of(policy, 5, 10)
    states = np.random.default_rng(3).integers(-3, 12, (40, 4))
    keep = KeepSet(states=states, applicable=np.ones((40, 5), dtype=bool))
    _, report = repair(policy, faults, method="finetune", keep=keep)
    assert report.all_fixed
    assert report.kept.all()


def test_without_faults_nothing_changes() -> None:
    policy = _network(1)
    repaired, report = repair(policy, faults_of(policy, 1, 0), method="finetune")
    assert report.changed == 0
    assert repaired.layers == policy.layers


def test_what_gradient_steps_leave_is_reported() -> None:
    policy, faults = alternating()
    _, report = RepairOptions(method="finetune", work=0.01).run(policy, faults)
    assert not report.all_fixed
    assert report.attempts == 1
    assert "left" in report.notes[-1]


def test_a_fallback_is_used_only_when_named_and_says_so() -> None:
    policy, faults = alternating()
    with pytest.raises(RepairError, match="no change of the last layer"):
        repair(policy, faults, method="last-layer")
    _, report = RepairOptions(method=("last-layer", "finetune"), work=3).run(policy, faults)
    assert report.method == "finetune"
    assert report.notes[0].startswith("last-layer was not enough")


def test_a_fallback_is_not_used_where_the_method_is_enough() -> None:
    policy = _network(1)
    faults = faults_of(policy, 1, 4)
    _, report = RepairOptions(method=("last-layer", "finetune"), work=2).run(policy, faults)
    assert report.method == "last-layer"
