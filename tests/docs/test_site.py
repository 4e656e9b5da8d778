"""The site: every page has its place, no link leads nowhere, and it builds without warnings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, page_id

SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAMED = set(re.findall(r"[\w/-]+\.md\b", SETTINGS))


def _without_code(page: Path) -> str:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def _links(page: Path) -> list[str]:
    """Links to other files, without their anchors."""
    found = re.findall(r"\]\(([^)\s]+)\)", _without_code(page))
    relative = [link for link in found if not re.match(r"[a-z]+:|#", link)]
    return [link.split("#")[0] for link in relative]


def test_every_page_has_its_place_in_the_navigation() -> None:
    pages = {page_id(page).removeprefix("docs/") for page in PAGES[1:]}
    assert {page for page in pages - NAMED if not page.startswith("results/")} == set()


def test_the_navigation_names_pages_that_exist() -> None:
    assert [name for name in sorted(NAMED) if not (ROOT / "docs" / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert [link for link in _links(page) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/reference").glob("*.md")), ids=page_id)
def test_the_reference_names_modules_that_exist(page: Path) -> None:
    modules = re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [name for name in modules if find_spec(name) is None] == []


def test_the_site_loads_nothing_from_other_hosts() -> None:
    assert "font: false" in SETTINGS
    assert re.findall(r"https?://", SETTINGS) == []


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
