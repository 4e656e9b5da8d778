"""Record an episode as a video; needs moviepy (``pip install 'safetest-gym[video]'``)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import RecordVideo

import safetest_gym  # noqa: F401 - registers the ids


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env: gym.Env[Any, Any] = RecordVideo(
            gym.make("safetest/FlappyBird-v0", render_mode="rgb_array"),
            f"{folder}/videos",
            name_prefix="bird",
        )
        _, info = env.reset(seed=3)
        env.action_space.seed(3)
        while info["outcome"] is None:
            action = env.action_space.sample(mask=info["action_mask"])
            *_, info = env.step(action)
        env.close()  # writes the file
        for video in Path(folder, "videos").glob("*.mp4"):
            size = video.stat().st_size // 1024
            print(f"{video.name}: {size} KiB, the episode ended in {info['outcome']}")


if __name__ == "__main__":
    main()
