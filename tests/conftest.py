"""What every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# The same examples in every run, and no verdict that depends on a machine's speed.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public models and papers beside the checkout; absent: skip."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared models are not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def data() -> Path:
    """Our own small models."""
    return ROOT / "tests" / "data"
