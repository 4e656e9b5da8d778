"""What a report says, and what it does where something is missing."""

from __future__ import annotations

import json
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.errors import ConfigError, StoreError
from safetest_gym.faults import FaultStore
from safetest_gym.policies import save_policy
from safetest_gym.reports import ReportConfig, TaskSource, write_report, write_task_file
from safetest_gym.reports.setting import setting_of
from tests.reports.folders import (
    Case,
    make_case,
    safe_policy,
    write_demo,
    write_loop,
    write_store,
    write_tests,
    write_training,
)

QUICK = ReportConfig(faults=2, runs=0)
LOW = FlappyBird(probability=0.25)
"""Its name is that of the default bird."""


class _Outline(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "srcset", "action"):
                self.addresses.append(str(value))


@pytest.fixture(scope="module")
def text(demo: Path) -> str:
    return demo.read_text(encoding="utf-8")


def _report(folder: Path, config: ReportConfig = QUICK) -> str:
    return write_report(folder, config=config).read_text(encoding="utf-8")


def _sections(text: str) -> list[str]:
    return re.findall(r'<section id="([a-z]+)"', text)


def test_a_folder_with_everything_has_every_section(text: str) -> None:
    assert _sections(text) == [
        "summary",
        "training",
        "loop",
        "player",
        "fuzzing",
        "faults",
        "environment",
    ]


def test_the_page_refers_to_nothing_outside(text: str) -> None:
    addresses = _Outline(text).addresses
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "default-src 'none'" in text


def test_headings_have_an_order_and_ids_are_unique(text: str) -> None:
    outline = _Outline(text)
    assert outline.levels[0] == 1
    assert outline.levels.count(1) == 1
    steps = zip(outline.levels, outline.levels[1:], strict=False)
    assert all(after - before <= 1 for before, after in steps)
    assert len(set(outline.ids)) == len(outline.ids)
    assert outline.tags.count("table") == outline.tags.count("caption")


def test_before_and_after_come_first(text: str) -> None:
    facts = text[text.index('<dl class="facts">') : text.index("</dl>")]
    assert re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", facts)).strip() == (
        "Unsafe start states 50.0 % → before, now 0.0 % Runs that reach the goal 25.0 % "
        "Open faults 4 → before, now 1 Verification ? UNKNOWN"
    )


def test_repairs_and_verification_are_told(text: str) -> None:
    for part in ("last-layer, exact", "3 of 4", "0.375", "the budget of states ran out"):
        assert part in text


def test_repairs_in_training_are_told_and_marked_on_the_curves(text: str) -> None:
    part = text[text.index('<section id="training"') : text.index('<section id="loop"')]
    for words in (
        "3 repairs tried between rollouts, 1 kept. 1 more time there was nothing to repair.",
        "</strong>: %Unsafe falls",
        "not kept: %Unsafe does not fall",
        "not kept: no method mends any of these faults",
        "75.0\N{NO-BREAK SPACE}% → 50.0\N{NO-BREAK SPACE}%",
        "a repair was kept at 1,500",
        "finetune, 2 rounds",
    ):
        assert words in part
    marks = part.count('class="mark"')
    assert marks == 2 * 2  # two charts, and the samples in their legends


def test_fuzzing_is_compared_for_every_policy_of_the_folder(text: str) -> None:
    part = text[text.index('<section id="fuzzing"') : text.index('<section id="faults"')]
    assert part.count("rowgroup") == 2
    assert part.count(" of 20<") == 6


def test_faults_beyond_the_limit_are_counted(text: str, case: Case) -> None:
    assert f"{len(case.faults) - 2:,} more" in text


def test_the_same_folder_gives_the_same_page(case: Case, tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", case)
    config = ReportConfig(faults=1, runs=10)
    first, second = (_report(folder, config) for _ in range(2))
    without_time = [re.sub(r"<time>.*?</time>", "", page) for page in (first, second)]
    assert without_time[0] == without_time[1]


def test_a_training_alone_has_no_faults(case: Case, tmp_path: Path) -> None:
    write_training(tmp_path / "run", case)
    assert _sections(_report(tmp_path / "run")) == ["summary", "training", "environment"]


def test_without_runs_no_policy_is_run(case: Case, tmp_path: Path) -> None:
    write_loop(tmp_path / "loop", case)
    (tmp_path / "loop" / "policies" / "000.nnet").write_text("broken", encoding="utf-8")
    assert _sections(_report(tmp_path / "loop")) == ["summary", "loop", "faults", "environment"]


def test_a_policy_that_cannot_be_loaded_is_told(case: Case, tmp_path: Path) -> None:
    write_loop(tmp_path / "loop", case)
    (tmp_path / "loop" / "policies" / "000.jani2nnet").write_text("{", encoding="utf-8")
    page = _report(tmp_path / "loop", ReportConfig(faults=0, runs=5))
    assert "policy as given could not be run" in page
    assert 'id="fuzzing"' in page


def test_where_no_policy_fails_what_follows_a_fault_is_shown(case: Case, tmp_path: Path) -> None:
    folder = write_loop(tmp_path / "loop", case)
    for number in (0, 1):
        for file in (folder / "policies").glob(f"00{number}.*"):
            file.unlink()
        save_policy(safe_policy(case), folder / "policies" / f"00{number}.npz")
    page = _report(folder, ReportConfig(faults=0, runs=5, episodes=1))
    assert "0 of 5" in page
    assert re.search(r"Every step in words – fault \d+ and what can follow", page)


def test_an_unknown_task_is_shown_by_values_and_says_so(tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", make_case(LOW))
    page = _report(folder)
    assert "--model FILE" in page
    assert "data:image/png" not in page
    assert "bird_y" in page


def test_parameters_of_a_bundled_task_are_read_from_its_name(tmp_path: Path) -> None:
    page = _report(write_demo(tmp_path / "demo", make_case(FlappyBird(width=21, height=9))))
    assert "data:image/png" in page
    assert "--model" not in page


def test_a_task_that_is_given_is_used(tmp_path: Path) -> None:
    case = make_case(LOW)
    folder = write_demo(tmp_path / "demo", case)
    path = write_report(folder, config=QUICK, setting=setting_of(case.task, LOW))
    page = path.read_text(encoding="utf-8")
    assert "data:image/png" in page
    assert "--model" not in page


def test_a_task_file_makes_the_option_needless(tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", make_case(LOW))
    write_task_file(folder, TaskSource(model="FlappyBird", constants={"probability": 0.25}))
    page = _report(folder)
    assert "data:image/png" in page
    assert "--model" not in page


def test_a_task_file_of_a_model_is_read_from_its_own_folder(
    case: Case, tmp_path: Path, data: Path
) -> None:
    write_training(tmp_path / "run", case)
    write_task_file(tmp_path / "run", TaskSource(model="nowhere.jani"))
    assert "nowhere.jani" in _report(tmp_path / "run")


def test_another_task_than_the_folders_is_refused(case: Case, tmp_path: Path) -> None:
    write_training(tmp_path / "run", case)
    with pytest.raises(ConfigError, match="must be those of flappy_bird_20_10"):
        write_report(tmp_path / "run", setting=setting_of(make_case(LOW).task))


def test_names_cannot_become_markup(case: Case, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    write_loop(tmp_path / "loop", case)
    path = tmp_path / "loop" / "loop.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, "method": evil, "reason": evil}), encoding="utf-8")
    connection = sqlite3.connect(tmp_path / "loop" / "faults.db")
    connection.execute(
        "UPDATE tasks SET digest = 'x', name = ?, variables = ?", (evil, f'["{evil}", "y"]')
    )
    connection.execute("UPDATE faults SET task = 'x'")
    connection.commit()
    connection.close()
    page = _report(tmp_path / "loop")
    assert evil not in page
    assert "&lt;img src=x" in page


def test_a_broken_store_is_told_and_the_rest_is_shown(case: Case, tmp_path: Path) -> None:
    write_tests(tmp_path / "tests", case)
    (tmp_path / "tests" / "faults.sqlite").write_bytes(b"no database" * 100)
    page = _report(tmp_path / "tests")
    assert "cannot be read as a fault store" in page
    assert "training" in _sections(page)


def test_a_store_alone_is_enough(case: Case, tmp_path: Path) -> None:
    write_store(tmp_path / "mine.db", case)
    assert _sections(_report(tmp_path)) == ["summary", "faults", "environment"]


def test_the_page_goes_where_it_is_wanted(case: Case, tmp_path: Path) -> None:
    write_training(tmp_path / "run", case)
    path = write_report(tmp_path / "run", tmp_path / "page.html", config=QUICK)
    assert path == tmp_path / "page.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert not (tmp_path / "run" / "report.html").exists()


def test_an_empty_folder_is_an_error_that_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nothing to report: it needs safety\.jsonl"):
        write_report(tmp_path)


def test_a_store_without_faults_says_so(case: Case, tmp_path: Path) -> None:
    FaultStore(tmp_path / "faults.db").close()
    page = _report(tmp_path)
    assert "Nothing was measured yet." in page
    assert "No fault is stored." in page


def test_negative_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match="runs must not be negative"):
        ReportConfig(runs=-1)
