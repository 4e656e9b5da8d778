"""A report that many tests read, and a browser to read it with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from safetest_gym.reports import ReportConfig, write_report
from tests.reports.chromium import Browser, find_chromium
from tests.reports.folders import Case, make_case, write_demo


@pytest.fixture(scope="session")
def case() -> Case:
    return make_case()


@pytest.fixture(scope="session")
def demo(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a folder with one of each."""
    folder = write_demo(tmp_path_factory.mktemp("demo") / "demo", case)
    return write_report(folder, config=ReportConfig(faults=2, runs=20))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium; install one, for instance with apt-get")
    browser = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
