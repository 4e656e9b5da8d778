from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from safetest_gym.policies import save_policy
from safetest_gym.reports.episodes import NamedPolicy, Watcher
from safetest_gym.reports.player import film_of
from safetest_gym.reports.setting import setting_of
from tests.reports.folders import Case


@pytest.fixture
def named(case: Case, tmp_path: Path) -> NamedPolicy:
    save_policy(case.bad, tmp_path / "bad.nnet")
    return NamedPolicy("bad", tmp_path / "bad.nnet")


def _watch(case: Case, named: NamedPolicy, most: int = 3) -> Watcher:
    watcher = Watcher(setting_of(case.task), 60, most)
    watcher.watch(named)
    return watcher


def test_every_strategy_makes_the_same_number_of_runs(case: Case, named: NamedPolicy) -> None:
    rows = _watch(case, named).rows
    assert [(row.strategy, row.runs) for row in rows] == [
        ("uniform", 60),
        ("greedy", 60),
        ("weighted", 60),
    ]


def test_kept_runs_fail_and_their_faults_are_decisions_of_the_policy(
    case: Case, named: NamedPolicy
) -> None:
    episodes = _watch(case, named).episodes
    assert 0 < len(episodes) <= 3
    known = {(fault.state.tobytes(), fault.action) for fault in case.faults}
    for episode in episodes:
        assert case.task.is_failing(episode.run.states[-1])
        faults = {
            (episode.run.states[step].tobytes(), int(episode.run.actions[step]))
            for step in episode.faults
        }
        assert faults
        assert faults <= known


def test_a_run_is_shown_even_if_nobody_is_known_to_blame(
    case: Case, named: NamedPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safetest_gym.reports.episodes._DECIDER_STATES", 1)
    watcher = _watch(case, named)
    assert len(watcher.episodes) == 1
    assert watcher.episodes[0].faults == frozenset()
    assert all(row.unresolved == row.failing for row in watcher.rows)


def test_a_film_has_a_frame_per_state_and_a_row_per_decision(
    case: Case, named: NamedPolicy
) -> None:
    (episode,) = _watch(case, named, most=1).episodes
    film = film_of(episode)
    frames = film.data["frames"]
    assert len(frames) == len(episode.run.states) == len(film.rows) + 1
    assert [frame["fault"] for frame in frames] == [
        place in episode.faults for place in range(len(frames))
    ]
    assert frames[-1]["next"] == ""
    assert all(frame["picture"].startswith("data:image/png;base64,") for frame in frames)


def test_of_a_long_run_the_end_is_shown(
    case: Case, named: NamedPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safetest_gym.reports.player.MOST_FRAMES", 3)
    (episode,) = _watch(case, named, most=1).episodes
    film = film_of(episode)
    assert film.left_out == len(episode.run.states) - 3
    last = film.data["frames"][-1]["step"]
    assert last == len(episode.run) == film.data["steps"]
    assert np.array_equal(episode.run.states[last], episode.run.states[-1])
