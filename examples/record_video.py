"""Draw an episode: frames as an animated GIF, which needs nothing but Pillow.

With moviepy installed, ``gymnasium.wrappers.RecordVideo`` writes MP4 files of the same
frames.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

import safetest_gym  # noqa: F401 - registers the ids


def main() -> None:
    env = gym.make("safetest/FlappyBird-v0", render_mode="rgb_array")
    _, info = env.reset(seed=3)
    frames = [Image.fromarray(np.asarray(env.render()))]
    env.action_space.seed(3)
    for _ in range(40):
        action = env.action_space.sample(mask=info["action_mask"])
        _, _, terminated, truncated, info = env.step(action)
        frames.append(Image.fromarray(np.asarray(env.render())))
        if terminated or truncated:
            break
    env.close()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episode.gif"
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=125, loop=0)
        print(f"{len(frames)} frames, {path.stat().st_size // 1024} KiB, ended: {info['outcome']}")


if __name__ == "__main__":
    main()
