"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from safetest_gym.engine import machine


@pytest.fixture(scope="module")
def own_code_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the code of thousands of random models out of the user's cache."""
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield
