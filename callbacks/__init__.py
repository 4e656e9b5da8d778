"""Stable-Baselines3's face of a task; imported as `safetest_gym.callbacks`."""

__all__: list[str] = []
