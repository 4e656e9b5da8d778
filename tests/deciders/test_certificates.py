"""Every proof checks, no corrupted one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.certificate import Certificate, load_certificate
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.tasks.families import LayeredFamily
from safetest_gym.errors import CertificateError, LimitError
from safetest_gym.policies import Interface, TablePolicy
from safetest_gym.task import Task, load_task
from tests.oracles.hashed_systems import hashed_task, states_of
from tests.oracles.policy_graph import policy_graph

KINDS: Any = [("label", "mdp"), ("edge", "mdp"), ("label", "dtmc")]


@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_every_verdict_about_random_systems_is_proved(mode: Any, kind: Any) -> None:
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(range(60))
    decider = make_decider("otf", task)
    for state in states:
        verdict = decider.decide(state)
        certificate = decider.certificate(state)
        assert certificate.verdict is verdict
        assert np.array_equal(certificate.states[0], state)
        check_certificate(task, certificate)


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("radius", [0, 1, 2])
def test_verdicts_with_a_radius_are_proved(mode: Any, radius: int) -> None:
    task, policy = _with_policy(mode)
    decider = make_decider("otf", task, policy=policy, radius=radius)
    for state in states_of(range(60), places=6):
        certificate = decider.certificate(state)
        assert certificate.verdict is decider.decide(state)
        check_certificate(task, certificate, policy=policy)


def _with_policy(mode: Any = "label") -> tuple[Task, TablePolicy]:
    task = hashed_task(places=6, mode=mode)
    states = states_of(range(120), places=6)
    masks = task.applicable_many(states)
    live = masks.any(axis=1)
    return task, TablePolicy(states[live], masks[live].argmax(axis=1), Interface.of(task))


def test_loaded_facts_can_be_proved(tmp_path: Path) -> None:
    task = hashed_task()
    states = states_of(range(40))
    decider = make_decider("otf", task, order="rand")
    decider.decide_many(states)
    decider.save(tmp_path / "facts.npz")
    other = make_decider("otf", task)
    other.load(tmp_path / "facts.npz")
    for state in states:
        check_certificate(task, other.certificate(state))
    assert other.statistics.tried == 0


def test_an_undecided_state_has_no_certificate() -> None:
    family = LayeredFamily(layers=100)
    task = load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")
    decider = make_decider("otf", task, budget=Budget(states=10))
    with pytest.raises(LimitError, match="before the state was decided"):
        decider.certificate(task.initial.enumerate(1)[0])


def test_a_safe_certificate_is_a_policy_that_never_fails() -> None:
    task = hashed_task()
    decider = make_decider("otf", task)
    runs = 0
    for state in states_of(range(60)):
        if decider.decide(state) is not Verdict.SAFE:
            continue
        certificate = decider.certificate(state)
        if not len(certificate.choices):
            continue
        graph = policy_graph(certificate.policy(task), task, state.reshape(1, -1))
        assert "failing" not in graph.kind.values()
        runs += 1
    assert runs > 20


def test_a_safe_certificate_runs_in_the_environment(shared: Path) -> None:
    line = shared / "models" / "planning" / "one_way_line_15_10_det.jani"
    task = load_task(line, line.with_suffix(".props.jani"))
    decider = make_decider("otf", task)
    env = JaniEnv(task)
    for start in task.initial.enumerate(1000)[:5]:
        policy = decider.certificate(start).policy(task)
        _, info = env.reset(seed=1, options={"state": start})
        for _ in range(300):
            mask = info["action_mask"].astype(np.bool_)
            action = int(policy.actions(env.state.reshape(1, -1), mask.reshape(1, -1))[0])
            _, _, terminated, _, info = env.step(action)
            if terminated:
                break
            assert not task.is_failing(env.state)
        assert info.get("outcome") != "failing"


def test_with_a_radius_the_policy_deviates_no_more_often_than_allowed() -> None:
    task, policy = _with_policy()
    decider = make_decider("otf", task, policy=policy, radius=2)
    deviated = 0
    for state in states_of(range(120), places=6):
        if decider.decide(state) is not Verdict.SAFE:
            continue
        certificate = decider.certificate(state)
        if not len(certificate.choices):
            continue
        table = dict(certificate.policy(task).items())
        own = dict(policy.items())
        most = {tuple(state.tolist()): 0}
        queue = list(most)
        while queue:
            place = queue.pop()
            assert not task.is_failing(np.array(place))
            if place not in table or task.is_goal(np.array(place)):
                continue
            count = most[place] + (table[place] != own[place])
            deviated += count > most[place]
            assert count <= 2
            outcomes = dict(task.successors(np.array(place)))
            for _, outcome in outcomes[task.actions.index(table[place])]:
                after = tuple(outcome.tolist())
                if most.get(after, -1) < count:
                    most[after] = count
                    queue.append(after)
    assert deviated


def test_certificates_survive_a_file(tmp_path: Path) -> None:
    task = hashed_task()
    decider = make_decider("otf", task)
    for i, state in enumerate(states_of(range(10))):
        path = tmp_path / f"{i}.npz"
        decider.certificate(state).save(path)
        check_certificate(task, load_certificate(path))


def test_files_that_are_no_certificates_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.npz"
    for content in (b"", b"PK\x03\x04 nothing"):
        path.write_bytes(content)
        with pytest.raises(CertificateError, match="is no certificate"):
            load_certificate(path)
    decider = make_decider("otf", hashed_task())
    decider.save(path)
    with pytest.raises(CertificateError, match="is no certificate"):
        load_certificate(path)


def test_a_certificate_proves_nothing_about_another_task() -> None:
    certificate = make_decider("otf", hashed_task()).certificate(np.array([3, 0]))
    with pytest.raises(CertificateError, match="about the task"):
        check_certificate(hashed_task(mode="edge"), certificate)


class _Corruption:
    """One random change that breaks a proof."""

    def __init__(self, task: Task, certificate: Certificate, rng: np.random.Generator) -> None:
        self.task = task
        self.certificate = certificate
        self.rng = rng

    def digest(self) -> Certificate:
        at = int(self.rng.integers(len(self.certificate.digest)))
        text = list(self.certificate.digest)
        text[at] = "g"
        return replace(self.certificate, digest="".join(text))

    def verdict(self) -> Certificate | None:
        other = Verdict.UNSAFE if self.certificate.verdict is Verdict.SAFE else Verdict.SAFE
        return replace(self.certificate, verdict=other)

    def missing_state(self) -> Certificate | None:
        certificate = self.certificate
        if len(certificate) < 2:
            return None
        gone = int(self.rng.integers(1, len(certificate)))
        keep = np.arange(len(certificate)) != gone
        number = np.cumsum(keep) - 1
        choices = certificate.choices[certificate.choices[:, 0] != gone].copy()
        choices[:, 0] = number[choices[:, 0]]
        refuting = choices[:, 2] >= 0
        choices[refuting, 2] = number[choices[refuting, 2]]
        return replace(
            certificate,
            states=certificate.states[keep],
            left=certificate.left[keep],
            rank=certificate.rank[keep],
            choices=choices,
        )

    def missing_choice(self) -> Certificate | None:
        choices = self.certificate.choices
        if not len(choices):
            return None
        gone = int(self.rng.integers(len(choices)))
        return replace(self.certificate, choices=np.delete(choices, gone, axis=0))

    def inapplicable_action(self) -> Certificate | None:
        choices = self.certificate.choices.copy()
        if not len(choices):
            return None
        at = int(self.rng.integers(len(choices)))
        mask = self.task.applicable(self.certificate.states[choices[at, 0]])
        choices[at, 1] = self.rng.choice([*np.flatnonzero(~mask), self.task.num_actions, -1])
        return replace(self.certificate, choices=choices)

    def unsafe_action(self) -> Certificate | None:
        choices = self.certificate.choices.copy()
        if self.certificate.verdict is not Verdict.SAFE or not len(choices):
            return None
        decider = make_decider("otf", self.task)
        at = int(self.rng.integers(len(choices)))
        state = self.certificate.states[choices[at, 0]]
        bad = np.flatnonzero(decider.action_verdicts(state.reshape(1, -1))[0] == Verdict.UNSAFE)
        if not len(bad):
            return None
        choices[at, 1] = bad[0]
        return replace(self.certificate, choices=choices)

    def wrong_rank(self) -> Certificate | None:
        certificate = self.certificate
        if certificate.verdict is Verdict.SAFE or not len(certificate.choices):
            return None
        row, _, target = self.rng.choice(certificate.choices)
        rank = certificate.rank.copy()
        rank[row] = rank[target] - self.rng.integers(2)
        return replace(certificate, rank=rank)

    def wrong_outcome(self) -> Certificate | None:
        certificate = self.certificate
        if certificate.verdict is Verdict.SAFE or not len(certificate.choices):
            return None
        choices = certificate.choices.copy()
        at = int(self.rng.integers(len(choices)))
        choices[at, 2] = self.rng.choice([choices[at, 0], len(certificate), -1])
        return replace(certificate, choices=choices)

    def shifted_state(self) -> Certificate | None:
        certificate = self.certificate
        if len(certificate) < 2:
            return None
        states = certificate.states.copy()
        states[self.rng.integers(1, len(certificate)), 0] += 1
        return replace(certificate, states=states)

    def failing_state(self) -> Certificate | None:
        certificate = self.certificate
        if certificate.verdict is not Verdict.SAFE:
            return None
        states = states_of(range(20))
        failing = states[(self.task.classify(states) & 1) != 0]
        changed = certificate.states.copy()
        changed[self.rng.integers(len(changed))] = self.rng.choice(failing)
        return replace(certificate, states=changed)


def test_a_thousand_corrupted_certificates_are_all_rejected() -> None:
    task = hashed_task()
    decider = make_decider("otf", task)
    certificates = [decider.certificate(state) for state in states_of(range(80))]
    rng = np.random.default_rng(0)
    kinds = [name for name in vars(_Corruption) if not name.startswith("_")]
    rejected = dict.fromkeys(kinds, 0)
    while sum(rejected.values()) < 1000:
        kind = min(rejected, key=rejected.__getitem__)
        corruption = _Corruption(task, certificates[rng.integers(len(certificates))], rng)
        corrupted = getattr(corruption, kind)()
        if corrupted is None:
            continue
        with pytest.raises(CertificateError):
            check_certificate(task, corrupted)
        rejected[kind] += 1
