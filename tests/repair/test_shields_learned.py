from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import ConfigError
from safetest_gym.repair.learned_shield import LearnConfig, LearnedShield, walked_states
from safetest_gym.task import Task


@pytest.fixture(scope="module")
def task() -> Task:
    return open_task(OneWayLine(packages=3, locations=6), {})[0]


@pytest.fixture(scope="module")
def states(task: Task) -> np.ndarray:
    return walked_states(task, 3000)


def test_it_blocks_most_faults_of_states_it_has_never_seen(task: Task, states: np.ndarray) -> None:
    shield = LearnedShield.learn(task, states[::2])
    unseen = states[1::2]
    verdicts = make_decider("otf", task).action_verdicts(unseen)
    safe = (verdicts == Verdict.SAFE).any(axis=1)
    faults = (verdicts == Verdict.UNSAFE)[safe]
    assert (~shield.mask_many(unseen[safe]) & faults).sum() >= 0.9 * faults.sum()
    allowed = shield.allowed(unseen[safe]) & (verdicts == Verdict.SAFE)[safe]
    assert allowed.sum() >= 0.8 * (verdicts == Verdict.SAFE)[safe].sum()


def test_its_report_counts_every_pair_of_the_states_kept_for_it(
    task: Task, states: np.ndarray
) -> None:
    quality = LearnedShield.learn(task, states, LearnConfig(trees=5)).quality
    assert quality.states > 100
    assert quality.blocked > 10 * quality.missed
    assert quality.wrongly_blocked < quality.safe_actions
    assert str(quality.blocked) in quality.describe()


def test_a_higher_recall_blocks_no_fewer_faults(task: Task, states: np.ndarray) -> None:
    low = LearnedShield.learn(task, states, LearnConfig(recall=0.5, trees=5, depth=3))
    high = LearnedShield.learn(task, states, LearnConfig(recall=1.0, trees=5, depth=3))
    assert (high.thresholds <= low.thresholds).all()
    assert high.quality.missed <= low.quality.missed


def test_scores_are_those_of_scikit_learn(task: Task, states: np.ndarray) -> None:
    from sklearn.ensemble import RandomForestClassifier

    shield = LearnedShield.learn(task, states, LearnConfig(trees=4, held_out=0.2, seed=3))
    verdicts = make_decider("otf", task).action_verdicts(distinct := np.unique(states, axis=0))
    keep = (verdicts == Verdict.SAFE).any(axis=1)
    distinct, verdicts = distinct[keep], verdicts[keep]
    order = np.random.default_rng(3).permutation(len(distinct))
    train = order[2 * int(len(distinct) * 0.2) :]
    scores = shield._forest.scores(distinct)
    for action in range(task.num_actions):
        rows = train[np.isin(verdicts[train, action], (Verdict.SAFE, Verdict.UNSAFE))]
        target = verdicts[rows, action] == Verdict.UNSAFE
        if target.any() and not target.all():
            forest = RandomForestClassifier(4, random_state=3).fit(distinct[rows], target)
            expected = forest.predict_proba(distinct)[:, 1]
            assert np.allclose(scores[:, action], expected)


def test_too_few_states_are_refused_with_what_to_do(task: Task, states: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="give more states"):
        LearnedShield.learn(task, states[:3])


def test_a_decider_of_another_task_is_refused(task: Task, states: np.ndarray) -> None:
    other = open_task(OneWayLine(packages=3, locations=6), {"failure": "truck_0 == 0"})[0]
    with pytest.raises(ConfigError, match="the decider was made for another"):
        LearnedShield.learn(task, states, decider=make_decider("otf", other))


def test_walked_states_are_different_and_not_terminal(task: Task) -> None:
    states = walked_states(task, 500, seed=4)
    assert len(np.unique(states, axis=0)) == len(states)
    assert not task.classify(states).any()
