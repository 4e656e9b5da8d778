"""Write a report: read, run, draw, put on a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetest_gym.errors import ConfigError, StoreError
from safetest_gym.replacing import replace_file
from safetest_gym.reports.cards import fault_cards
from safetest_gym.reports.episodes import NamedPolicy, Watcher
from safetest_gym.reports.fault_file import FaultList, read_faults
from safetest_gym.reports.fault_map import map_data
from safetest_gym.reports.page import Page, StoreSection, render
from safetest_gym.reports.player import film_of
from safetest_gym.reports.setting import Setting, Settings
from safetest_gym.reports.sources import Sources, read_sources
from safetest_gym.reports.summary import policy_name

__all__ = ["ReportConfig", "write_report"]

_MOST_POLICIES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig:
    """How much a report shows.

    Attributes:
        faults: of each store, with pictures.
        runs: of each strategy of fuzzing and policy; 0 runs no policy at all, so there is
            neither a comparison nor a player.
        episodes: unsafe runs to step through.
    """

    faults: int = 8
    runs: int = 200
    episodes: int = 3

    def __post_init__(self) -> None:
        for name in ("faults", "runs", "episodes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, got {getattr(self, name)}")


def write_report(
    directory: str | Path,
    output: str | Path | None = None,
    *,
    setting: Setting | None = None,
    config: ReportConfig | None = None,
    tell: Callable[[str], None] | None = None,
) -> Path:
    """Write one HTML file about a folder; return its path.

    Policies of the folder are loaded and run, so report folders of your own only.

    Args:
        output: by default ``report.html`` in the folder.
        setting: the folder's task, if it is neither a bundled one with its default
            parameters nor named by a ``task.json``.
        tell: called with what is being done.

    Raises:
        StoreError: there is nothing to report.
    """
    folder = Path(directory)
    path = folder / "report.html" if output is None else Path(output)
    _require_writable(path, folder)
    page = _collect(folder, setting, config or ReportConfig(), tell or _quiet)
    replace_file(path, lambda fresh: fresh.write_text(render(page), encoding="utf-8"))
    return path


def _require_writable(path: Path, folder: Path) -> None:
    """Before runs and pictures, not after them; what ``folder`` is is told elsewhere."""
    if folder.is_dir() and not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path} cannot be written; give another file for the report")


def _quiet(_: str) -> None:
    pass


def _collect(
    folder: Path, given: Setting | None, config: ReportConfig, tell: Callable[[str], None]
) -> Page:
    tell("reading the folder")
    sources = read_sources(folder)
    settings = Settings(given, sources.task_files)
    lists = _fault_lists(sources, settings.problems)
    page = Page(sources, lists, problems=settings.problems)
    digests = _digests(sources, lists)
    if given is not None and digests and given.task.digest not in digests:
        raise ConfigError(
            f"nothing in {folder} is about {given.task.name} as it was given; model, property, "
            f"constants and mode must be those of {', '.join(sorted(set(digests.values())))}"
        )
    found = {digest: settings.find(digest, name) for digest, name in digests.items()}
    page.settings = [setting for setting in found.values() if setting is not None]
    page.unknown_tasks = [digests[digest] for digest, setting in found.items() if setting is None]
    for faults in lists:
        tell(f"drawing faults of {faults.name}")
        setting = found.get(faults.digest)
        cards = fault_cards(faults, setting, config.faults)
        page.stores.append(StoreSection(faults, cards, map_data(faults, setting)))
    if config.runs:
        for digest, setting in found.items():
            if setting is not None:
                _watch(page, setting, digest, config, tell)
    return page


def _fault_lists(sources: Sources, problems: list[str]) -> list[FaultList]:
    """The faults of every store; what cannot be read becomes a problem."""
    lists = []
    for store in sources.stores:
        try:
            lists += [found for found in read_faults(store, sources.name_of(store)) if found.faults]
        except StoreError as error:
            problems.append(str(error))
    return lists


def _digests(sources: Sources, lists: list[FaultList]) -> dict[str, str]:
    """Every task in the folder: its digest and its name."""
    named = [loop.data for loop in sources.loops]
    named += [training.options for training in sources.trainings]
    digests = {tests.digest: f"the task of {tests.folder.name}" for tests in sources.tests}
    digests |= {str(data.get("digest", "")): str(data.get("task")) for data in named}
    digests |= {faults.digest: faults.task for faults in lists}
    digests.pop("", None)
    return digests


def _watch(
    page: Page, setting: Setting, digest: str, config: ReportConfig, tell: Callable[[str], None]
) -> None:
    """Run the task's policies; draw some of the unsafe runs."""
    watcher = Watcher(setting, config.runs, config.episodes)
    for named in _policies(page.sources, digest)[:_MOST_POLICIES]:
        tell(f"running the {named.name}")
        watcher.watch(named)
    for faults in page.faults:
        if faults.digest == digest:
            watcher.continue_faults(faults.faults)
    page.fuzzing += watcher.rows
    page.problems += watcher.problems
    for episode in watcher.episodes:
        tell("drawing an unsafe run")
        page.films.append(film_of(episode))


def _policies(sources: Sources, digest: str) -> list[NamedPolicy]:
    """The policies of a task that the folder holds, those before a repair first."""
    found = []
    for loop in sources.loops:
        if loop.data.get("digest") != digest or not loop.iterations:
            continue
        for number in sorted({0, int(loop.iterations[-1].get("number", 0))}):
            files = sorted((loop.folder / "policies").glob(f"{number:03d}.*"))
            plain = [file for file in files if not file.name.endswith(".interface.json")]
            name = _where(policy_name(number), loop.name)
            found += [NamedPolicy(name, file) for file in plain[:1]]
    for tests in sources.tests:
        path = tests.folder / "best_safe_model.zip"
        if tests.digest == digest and path.exists():
            found.append(NamedPolicy(_where("safest model", tests.name), path))
    for training in sources.trainings:
        path = training.folder / "model.zip"
        if training.options.get("digest") == digest and path.exists():
            found.append(NamedPolicy(_where("final policy", training.name), path))
    return found


def _where(name: str, folder: str) -> str:
    return name if folder == "." else f"{name} ({folder})"
