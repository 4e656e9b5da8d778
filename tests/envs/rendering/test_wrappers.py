from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import safetest_gym  # noqa: F401 - registers the ids


def walk(env: gym.Env[Any, Any]) -> None:
    _, info = env.reset(seed=3)
    env.action_space.seed(3)
    while info["outcome"] is None:
        action = env.action_space.sample(mask=info["action_mask"])
        *_, info = env.step(action)
    env.close()


def test_a_video_can_be_recorded(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    env = gym.make("safetest/Transport-v0", render_mode="rgb_array")
    walk(gym.wrappers.RecordVideo(env, str(tmp_path / "videos")))
    (video,) = (tmp_path / "videos").glob("*.mp4")
    assert video.stat().st_size > 1000


@pytest.mark.filterwarnings("ignore:.*HumanRendering wrapper is being applied")
def test_a_window_shows_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make("safetest/Transport-v0", render_mode="human")
    env.metadata["render_fps"] = 1000
    walk(env)


@pytest.mark.parametrize(
    ("name", "bare"),
    [("OneWayLine", {"icy": []}), ("TwoWayLine", {"icy": []}), ("NPuzzle", {"forbidden": []})],
)
def test_the_default_scenery_is_drawn(name: str, bare: dict[str, Any]) -> None:
    icy: dict[str, Any] = {"variant": "icy"} if "Line" in name else {}
    frames = []
    for arguments in (icy, icy | bare):
        env = gym.make(f"safetest/{name}-v0", render_mode="rgb_array", **arguments)
        state = gym.make(f"safetest/{name}-v0", **icy).reset(seed=0)[1]["state"]
        env.reset(options={"state": state})
        frames.append(np.asarray(env.render()))
    assert not np.array_equal(frames[0], frames[1])
