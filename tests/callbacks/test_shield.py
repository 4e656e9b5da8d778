from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks.lessons import Lessons
from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.callbacks.shield import ShieldCallback
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import ConfigError
from safetest_gym.policies import evaluate, policy_from_sb3
from safetest_gym.repair.learned_shield import LearnConfig, LearnedShield, walked_states
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.repair.shields import DeciderShield, FaultShield, ShieldError
from safetest_gym.repair.shields_file import load_shield, save_shield
from tests.callbacks.conftest import make_env, make_model

Plan = dict[str, Any]


class _Ends(BaseCallback):
    """How episodes of training end."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[str] = []

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        self.outcomes += [info["outcome"] for info in infos if info.get("outcome")]
        return True


@pytest.mark.parametrize("algorithm", ["MaskablePPO", "MaskableDQN"])
@pytest.mark.parametrize(
    "line",
    [OneWayLine(packages=2, locations=5), TwoWayLine(packages=1, locations=4, variant="icy_park")],
    ids=["one_way", "two_way_icy_park"],
)
def test_with_the_decider_no_episode_fails_when_every_start_is_safe(
    algorithm: str, line: Any, plan: Plan
) -> None:
    env = SB3VecEnv(line, 8, step_limit=50)
    starts = env.task.initial.enumerate(10_000)
    assert (make_decider("otf", env.task).decide_many(starts) == Verdict.SAFE).all()
    shield = ShieldCallback(mode="decider", tests={"every_steps": 1000, "plan": plan})
    ends = _Ends()
    make_model(algorithm, env).learn(2000, [shield, ends])
    assert len(ends.outcomes) >= 10
    assert ends.outcomes.count("failing") == shield.failing_episodes == 0
    assert shield.report()["restricted_rate"] > 0


@pytest.mark.parametrize("lessons", [0, 100])
def test_the_shield_of_confirmed_faults_suffices_when_training_ends(
    lessons: int, plan: Plan
) -> None:
    shield = ShieldCallback(mode="faults", tests={"every_steps": 32, "plan": plan}, lessons=lessons)
    model = make_model("MaskablePPO")
    model.learn(64, shield)
    task = shield.tests.task
    every = task.initial.enumerate(10_000)
    guarded = GuardedPolicy(policy_from_sb3(model), shield.shield)
    assert evaluate(guarded, task, every, 1).unsafe_rate.value == 0


def test_without_a_shield_the_same_training_fails() -> None:
    ends = _Ends()
    env = SB3VecEnv(OneWayLine(packages=2, locations=5), 8, step_limit=50)
    make_model("MaskablePPO", env).learn(2000, ends)
    assert "failing" in ends.outcomes


@pytest.mark.parametrize("kind", ["DummyVecEnv", "SubprocVecEnv", "SB3VecEnv", "VecNormalize"])
def test_confirmed_faults_are_masked_in_every_environment(kind: str, plan: Plan) -> None:
    env = make_env(kind)
    shield = ShieldCallback(mode="faults", tests={"every_steps": 32, "plan": plan})
    make_model("MaskablePPO", env).learn(64, shield)
    faults = shield.tests.faults
    for held in env.env_method("get_shield"):
        assert isinstance(held, FaultShield)
        masks = held.mask_many(np.array([fault.state for fault in faults]))
        assert not masks[np.arange(len(faults)), [fault.action for fault in faults]].any()
    env.close()


def test_it_uses_the_tests_of_a_callback_before_it(plan: Plan) -> None:
    tests = SafetyTestCallback(every_steps=32, plan=plan)
    shield = ShieldCallback(tests=tests)
    make_model("MaskablePPO").learn(64, [tests, shield])
    assert len(tests.history) == 2
    assert shield.report()["shield"]["faults"] == len(tests.faults) > 0


def test_tests_that_stand_behind_it_are_refused(plan: Plan) -> None:
    tests = SafetyTestCallback(every_steps=32, plan=plan)
    with pytest.raises(ConfigError, match=r"put it before this callback"):
        make_model("MaskablePPO").learn(64, [ShieldCallback(tests=tests), tests])


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        ("decider-then-faults", ["decider", "faults"]),
        ("faults-then-decider", ["faults", "decider"]),
    ],
)
def test_a_schedule_changes_from_one_shield_to_the_other(
    mode: Any, kinds: list[str], plan: Plan
) -> None:
    seen: list[str] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            seen.append(self.training_env.env_method("get_shield")[0].kind)
            return True

    shield = ShieldCallback(mode=mode, switch_after=48, tests={"every_steps": 1000, "plan": plan})
    make_model("MaskablePPO").learn(96, [shield, Watch()])
    assert seen == [kinds[0]] * 23 + [kinds[1]] * 25


def test_the_shield_is_saved_after_every_test(plan: Plan, tmp_path: Path) -> None:
    shield = ShieldCallback(
        tests={"every_steps": 32, "plan": plan}, save_path=tmp_path / "new" / "shield.npz"
    )
    make_model("MaskablePPO").learn(64, shield)
    loaded = load_shield(tmp_path / "new" / "shield.npz", shield.tests.task)
    assert loaded.report()["faults"] == len(shield.tests.faults)


def test_the_shield_is_saved_without_any_test(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "shield.npz"
    tests = {"every_steps": 10_000, "plan": plan}
    shield = ShieldCallback(mode="decider", tests=tests, save_path=path)
    make_model("MaskablePPO").learn(32, shield)
    assert load_shield(path, shield.tests.task).kind == "decider"


def test_a_schedule_goes_on_where_resumed_training_left_it(plan: Plan, tmp_path: Path) -> None:
    tests = {"every_steps": 32, "plan": plan, "folder": str(tmp_path), "resume": True}
    given: dict[str, Any] = {"mode": "decider-then-faults", "switch_after": 48, "tests": tests}
    make_model("MaskablePPO").learn(64, ShieldCallback(**given))
    env = make_env()
    make_model("MaskablePPO", env).learn(2, ShieldCallback(**given))
    assert env.env_method("get_shield")[0].kind == "faults"


def test_resumed_training_is_shielded_with_the_old_faults_at_once(
    plan: Plan, tmp_path: Path
) -> None:
    tests = {"every_steps": 32, "plan": plan, "folder": str(tmp_path), "resume": True}
    make_model("MaskablePPO").learn(64, first := ShieldCallback(tests=tests))
    env = make_env()
    second = ShieldCallback(tests={**tests, "every_steps": 10_000})
    make_model("MaskablePPO", env).learn(16, second)
    held = env.env_method("get_shield")[0]
    assert len(held) == len(first.tests.faults) > 0


def test_a_learned_shield_may_be_in_force_besides(plan: Plan, tmp_path: Path) -> None:
    env = make_env()
    task = env.get_attr("task")[0]
    learned = LearnedShield.learn(task, walked_states(task, 400), LearnConfig(trees=3))
    save_shield(learned, tmp_path / "learned.npz")
    shield = ShieldCallback(
        tests={"every_steps": 64, "plan": plan}, extra=str(tmp_path / "learned.npz")
    )
    make_model("MaskablePPO", env).learn(64, shield)
    assert env.env_method("get_shield")[0].kind == "combined"


def test_an_extra_shield_of_another_model_is_refused(plan: Plan) -> None:
    other = SB3VecEnv(OneWayLine(packages=1, locations=6), 1).task
    with pytest.raises(ShieldError, match="make the shield from this task"):
        make_model("MaskablePPO").learn(
            16, ShieldCallback(tests={"plan": plan}, extra=FaultShield(other))
        )


@pytest.mark.parametrize("kind", ["DummyVecEnv", "SB3VecEnv"])
def test_environments_refuse_a_shield_of_another_model(kind: str) -> None:
    other = SB3VecEnv(OneWayLine(packages=1, locations=6), 1).task
    env = make_env(kind)
    with pytest.raises(ShieldError, match="make the shield from this task"):
        env.env_method("set_shield", FaultShield(other))


@pytest.mark.parametrize("algorithm", ["PPO", "DQN"])
def test_an_algorithm_without_masks_is_refused_with_what_to_do(algorithm: str, plan: Plan) -> None:
    with pytest.raises(ConfigError, match="does not use action masks"):
        make_model(algorithm).learn(16, ShieldCallback(tests={"plan": plan}))


def test_a_switch_is_needed_exactly_for_modes_that_change() -> None:
    with pytest.raises(ConfigError, match="switch_after is needed"):
        ShieldCallback(mode="decider-then-faults")
    with pytest.raises(ConfigError, match="switch_after is needed"):
        ShieldCallback(mode="faults", switch_after=3)
    mode: Any = "fault"
    with pytest.raises(ConfigError, match="mode must be one of"):
        ShieldCallback(mode=mode)


def test_the_report_names_variables_that_differ_where_the_shield_acts(plan: Plan) -> None:
    shield = ShieldCallback(mode="decider", tests={"every_steps": 500, "plan": plan})
    make_model("MaskablePPO").learn(1000, shield)
    report = shield.report()
    names = [variable.name for variable in shield.tests.task.variables]
    assert report["variables"]
    assert set(report["variables"]) <= set(names)
    assert len(report["needed_rate_over_time"]) == 2
    assert report["needed_rate"] <= report["restricted_rate"]


def test_lessons_teach_the_policy_not_to_need_the_shield(plan: Plan) -> None:
    def unsafe(lessons: int) -> float:
        env = SB3VecEnv(OneWayLine(packages=1, locations=5), 8, step_limit=50)
        shield = ShieldCallback(
            mode="decider", tests={"every_steps": 4000, "plan": plan}, lessons=lessons
        )
        make_model("MaskablePPO", env).learn(2000, shield)
        return shield.tests.test_now().unsafe_start_rate

    assert unsafe(20) < unsafe(0)


def test_a_lesson_changes_only_what_leads_to_the_logits() -> None:
    model: Any = make_model("MaskablePPO")
    task = model.get_env().task
    states = walked_states(task, 200)
    shield = DeciderShield(task)
    restricted = (shield.allowed(states) != task.applicable_many(states)).any(axis=1)
    lessons = Lessons(5)
    lessons.add(states[restricted])
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    assert lessons.give(model, shield) > 0
    changed = {n for n, v in model.policy.state_dict().items() if not torch.equal(v, before[n])}
    assert changed
    assert all(n.startswith(("mlp_extractor.policy_net", "action_net")) for n in changed)
