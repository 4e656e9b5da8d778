from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from safetest_gym.callbacks.network import LearnerNetwork
from safetest_gym.callbacks.repair import RepairCallback
from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.errors import ConfigError
from safetest_gym.policies import load_policy, policy_from_sb3
from safetest_gym.repair.problem import RepairError
from safetest_gym.repair.repairing import RepairOptions, fixed_faults, repair
from safetest_gym.repair.requests import FaultSet
from tests.callbacks.conftest import make_model

Plan = dict[str, Any]
ALL = ["PPO", "A2C", "DQN", "QRDQN", "MaskablePPO", "MaskableDQN"]


def _trained(algorithm: str, plan: Plan) -> tuple[Any, SafetyTestCallback]:
    tests = SafetyTestCallback(every_steps=32, plan=plan)
    model = make_model(algorithm)
    model.learn(64, tests)
    tests.test_now()
    return model, tests


def _moments(model: Any) -> list[torch.Tensor]:
    held = model.policy.optimizer.state.values()
    return [value.clone() for entry in held for value in entry.values() if torch.is_tensor(value)]


@pytest.mark.parametrize("algorithm", ALL)
def test_a_repaired_layer_is_in_place_and_decides_through_torch(algorithm: str, plan: Plan) -> None:
    model, tests = _trained(algorithm, plan)
    before: Any = policy_from_sb3(model).bind(tests.task)
    wanted = FaultSet.of(tests.task, tests.faults)
    after, _ = repair(before, wanted, method="last-layer")
    parameters = {name: id(value) for name, value in model.policy.named_parameters()}
    LearnerNetwork(model).change(before, after)
    assert {name: id(value) for name, value in model.policy.named_parameters()} == parameters
    assert fixed_faults(policy_from_sb3(model).bind(tests.task), wanted, "strong").all()
    model.learn(32, reset_num_timesteps=False)


def test_moments_of_changed_entries_start_anew_and_others_stay(plan: Plan) -> None:
    model, tests = _trained("MaskablePPO", plan)
    before: Any = policy_from_sb3(model).bind(tests.task)
    after, _ = repair(before, FaultSet.of(tests.task, tests.faults), method="last-layer")
    weight = model.policy.action_net.weight
    old = weight.detach().clone()
    moments = model.policy.optimizer.state[weight]["exp_avg"]
    kept = moments.clone()
    LearnerNetwork(model).change(before, after)
    changed = old != weight
    assert (moments[changed] == 0).all()
    assert torch.equal(moments[~changed], kept[~changed])


def test_target_networks_get_the_repaired_layer(plan: Plan) -> None:
    model, tests = _trained("DQN", plan)
    before: Any = policy_from_sb3(model).bind(tests.task)
    after, _ = repair(before, FaultSet.of(tests.task, tests.faults), method="last-layer")
    LearnerNetwork(model).change(before, after)
    assert torch.equal(model.q_net.q_net[-1].weight, model.q_net_target.q_net[-1].weight)


@pytest.mark.parametrize("algorithm", ["PPO", "QRDQN"])
def test_all_layers_can_be_changed_in_place(algorithm: str, plan: Plan) -> None:
    model, tests = _trained(algorithm, plan)
    before: Any = policy_from_sb3(model).bind(tests.task)
    wanted = FaultSet.of(tests.task, tests.faults)
    after, report = RepairOptions(method="finetune", work=5).run(before, wanted)
    assert (after.layers[0].weight != before.layers[0].weight).any()
    LearnerNetwork(model).change(before, after)
    real = policy_from_sb3(model).bind(tests.task)
    assert fixed_faults(real, wanted, "strong")[report.fixed].all()


def test_where_the_last_layer_is_not_enough_all_layers_are_repaired(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_: Any) -> Any:
        raise RepairError("faults conflict", faults=np.array([0]))

    monkeypatch.setattr("safetest_gym.repair.last_layer.repair_last_layer", stuck)
    callback = RepairCallback(
        tests={"every_steps": 32, "plan": plan},
        every_steps=32,
        goal_tolerance=1.0,
        options={"work": 1.0},
    )
    make_model("MaskablePPO").learn(96, callback)
    tried = [record for record in callback.history if "method" in record]
    assert tried
    assert all(record["method"] == "finetune" for record in tried)


def test_an_ensemble_is_distilled_and_repaired_beside_the_network(
    plan: Plan, tmp_path: Path
) -> None:
    plain = make_model("MaskablePPO").learn(128)
    tests = {"every_steps": 32, "plan": plan, "folder": tmp_path}
    callback = RepairCallback(
        tests=tests, every_steps=32, trees=3, goal_tolerance=1.0, options={"method": "last-layer"}
    )
    callback._objection = lambda *_: "stay"  # type: ignore[method-assign]  # the network stays
    repaired = make_model("MaskablePPO").learn(128, callback)
    assert any(record.get("trees_left") == 0 for record in callback.history)
    kept: Any = load_policy(tmp_path / "repaired_trees.json", callback.tests.task)
    assert callback.ensemble is not None
    states = np.array([fault.state for fault in callback.tests.faults])
    applicable = callback.tests.task.applicable_many(states)
    mine = callback.ensemble.actions(states, applicable)
    assert (kept.actions(states, applicable) == mine).all()
    pairs = zip(plain.policy.parameters(), repaired.policy.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs)


def test_unknown_options_of_a_repair_are_refused() -> None:
    with pytest.raises(ConfigError, match="has no time;"):
        RepairCallback(options={"time": 3})


def test_rolling_back_restores_every_bit(plan: Plan) -> None:
    model, tests = _trained("A2C", plan)
    before: Any = policy_from_sb3(model).bind(tests.task)
    after, _ = repair(before, FaultSet.of(tests.task, tests.faults), method="last-layer")
    old = {name: value.clone() for name, value in model.policy.state_dict().items()}
    moments = _moments(model)
    layer = LearnerNetwork(model)
    layer.change(before, after)
    assert any(not torch.equal(v, old[n]) for n, v in model.policy.state_dict().items())
    assert any(not torch.equal(*pair) for pair in zip(moments, _moments(model), strict=True))
    layer.roll_back()
    assert all(torch.equal(*pair) for pair in zip(moments, _moments(model), strict=True))
    assert all(torch.equal(v, old[n]) for n, v in model.policy.state_dict().items())


def test_repairs_that_are_not_better_leave_training_bit_for_bit_the_same(plan: Plan) -> None:
    plain = make_model("MaskablePPO").learn(256)
    callback = RepairCallback(
        tests={"every_steps": 32, "plan": plan}, every_steps=32, goal_tolerance=-2.0
    )
    repaired = make_model("MaskablePPO").learn(256, callback)
    assert any(record["wrong_before"] for record in callback.history)
    assert not any(record["kept"] for record in callback.history)
    pairs = zip(plain.policy.parameters(), repaired.policy.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs)


@pytest.mark.parametrize("algorithm", ["MaskablePPO", "DQN"])
def test_kept_repairs_make_the_policy_safer_at_once(algorithm: str, plan: Plan) -> None:
    callback = RepairCallback(
        tests={"every_steps": 32, "plan": plan}, every_steps=32, goal_tolerance=1.0
    )
    make_model(algorithm).learn(400, callback)
    kept = [record for record in callback.history if record["kept"]]
    for record in kept:
        assert record["unsafe_after"] < record["unsafe_before"]
        assert record["goal_after"] >= record["goal_before"] - 1.0
    tried = [record for record in callback.history if record["wrong_before"]]
    assert tried
    assert all(np.isfinite(record["seconds"]) for record in tried)


@pytest.mark.parametrize("most", [5, 0])
def test_so_many_good_decisions_are_protected(
    most: int, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    run = RepairOptions.run

    def noted(options: RepairOptions, policy: Any, wanted: FaultSet, keep: Any = None) -> Any:
        given.append((policy, keep))
        return run(options, policy, wanted, keep)

    monkeypatch.setattr(RepairOptions, "run", noted)
    tests = {"every_steps": 64, "plan": {**plan, "keep": most}}
    callback = RepairCallback(tests=tests, every_steps=64, goal_tolerance=1.0)
    make_model("MaskablePPO").learn(256, callback)
    sets = [(policy, keep) for policy, keep in given if keep is not None]
    assert given
    assert bool(sets) == (most > 0)
    for policy, keep in sets:
        assert 1 <= len(keep) <= most
        decider = make_decider("otf", callback.tests.task)
        actions = policy.actions(keep.states, keep.applicable)
        safe = decider.action_verdicts(keep.states) == Verdict.SAFE
        assert safe[np.arange(len(keep)), actions].all()


def test_a_negative_number_of_decisions_to_keep_is_refused() -> None:
    with pytest.raises(ConfigError, match="keep must not be negative, got -1"):
        RepairCallback(tests={"plan": {"keep": -1}})
