"""The report in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reports.chromium import Browser, Tab

Open = Callable[..., Tab]

STATUS = "document.getElementById('film-status').textContent"
PICTURE = "document.getElementById('film-picture').src"


@pytest.fixture
def open_tab(browser: Browser, demo: Path) -> Iterator[Open]:
    tabs: list[Tab] = []

    def open_demo(**options: object) -> Tab:
        tabs.append(Tab(browser, demo, **options))  # type: ignore[arg-type]  # checked there
        return tabs[-1]

    yield open_demo
    for tab in tabs:
        tab.close()


def _click(tab: Tab, name: str) -> None:
    tab.run(f"document.getElementById('film-{name}').click()")


def test_the_player_steps_forwards_and_back(open_tab: Open) -> None:
    tab = open_tab()
    first, picture = tab.run(STATUS), tab.run(PICTURE)
    _click(tab, "next")
    assert tab.run(STATUS) != first
    assert tab.run(PICTURE) != picture
    _click(tab, "back")
    assert (tab.run(STATUS), tab.run(PICTURE)) == (first, picture)


def test_arrow_keys_step_the_player(open_tab: Open) -> None:
    tab = open_tab()
    tab.run("document.getElementById('player-box').focus()")
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    assert tab.run(STATUS).startswith("State 2 of")
    tab.press("ArrowLeft")
    assert tab.run(STATUS).startswith("State 1 of")
    tab.press("End")
    assert tab.run(STATUS).endswith("This state fails.")


def test_the_slider_moves_by_arrow_keys_once_a_step(open_tab: Open) -> None:
    tab = open_tab()
    tab.run("document.getElementById('film-slider').focus()")
    tab.press("ArrowRight")
    assert tab.run(STATUS).startswith("State 1 of")


def test_the_player_goes_to_the_fault(open_tab: Open) -> None:
    tab = open_tab()
    _click(tab, "fault")
    assert tab.run(STATUS).endswith("is a fault.")


def test_playing_ends_with_the_failing_state_and_can_be_paused(open_tab: Open) -> None:
    tab = open_tab()
    _click(tab, "play")
    assert tab.run("document.getElementById('film-play').textContent") == "Pause"
    _click(tab, "play")
    assert tab.run("document.getElementById('film-play').textContent") == "Play"
    _click(tab, "last")
    _click(tab, "back")
    _click(tab, "play")
    tab.wait_for(f"{STATUS}.endsWith('fails.')")
    assert tab.run("document.getElementById('film-play').textContent") == "Play"


def test_playing_is_slower_for_who_wants_less_motion(open_tab: Open) -> None:
    pauses = []
    for calm in (False, True):
        tab = open_tab(calm=calm)
        tab.run("window.setInterval = (_, pause) => { window.pause = pause; return 1; }; 0")
        _click(tab, "play")
        pauses.append(tab.run("window.pause"))
    assert pauses[1] >= 3 * pauses[0]


def test_the_status_is_announced_but_not_while_playing(open_tab: Open) -> None:
    tab = open_tab()
    live = "document.getElementById('film-status').getAttribute('aria-live')"
    assert tab.run(live) == "polite"
    _click(tab, "play")
    assert tab.run(live) == "off"
    _click(tab, "play")


def test_a_picture_is_enlarged_by_keyboard_and_closed_by_escape(open_tab: Open) -> None:
    tab = open_tab(width=390)
    picture = "document.querySelector('.card .enlarge')"
    tab.run(f"{picture}.focus()")
    tab.press("Enter")
    assert tab.run("document.querySelector('dialog').open")
    assert tab.run("document.querySelector('dialog img').clientWidth") > 640
    assert tab.run(f"document.querySelector('dialog img').src === {picture}.firstChild.src")
    tab.press("Escape")
    assert not tab.run("document.querySelector('dialog').open")
    assert tab.run(f"document.activeElement === {picture}")


@pytest.mark.parametrize(("width", "index"), [(390, 0), (1280, -1)])
def test_only_regions_that_can_be_scrolled_take_the_focus(
    open_tab: Open, width: int, index: int
) -> None:
    tab = open_tab(width=width)
    region = "document.querySelector('#fuzzing .scroll')"
    tab.wait_for(f"{region}.tabIndex === {index}")


def test_the_enlarged_picture_is_the_one_of_the_player(open_tab: Open) -> None:
    tab = open_tab()
    _click(tab, "last")
    tab.run("document.querySelector('.screen .enlarge').click()")
    assert tab.run(f"document.querySelector('dialog img').src === {PICTURE}")
    assert tab.run("document.querySelector('dialog img').alt").startswith("Picture of state")


def test_the_map_follows_the_choice_of_variables(open_tab: Open) -> None:
    tab = open_tab()
    label = "document.querySelector('#map-0 svg').getAttribute('aria-label')"
    across = "document.getElementById('map-0-x')"
    before = tab.run(label)
    tab.run(f"{across}.value = '1'; {across}.dispatchEvent(new Event('change'))")
    assert tab.run(label) != before
    assert tab.run("document.querySelector('#map-0 .x-name').textContent") == "bird_y"


def test_the_map_counts_every_fault(open_tab: Open, demo: Path) -> None:
    tab = open_tab()
    titles = tab.run("[...document.querySelectorAll('#map-0 title')].map(t => t.textContent)")
    stored = tab.run("JSON.parse(document.getElementById('map-data').textContent)[0].states.length")
    assert sum(int(title.rpartition(": ")[2]) for title in titles) == stored


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_and_the_console_stays_empty(
    open_tab: Open, width: int, dark: bool
) -> None:
    tab = open_tab(width=width, dark=dark)
    tab.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert tab.run("(e => e.scrollWidth - e.clientWidth)(document.documentElement)") == 0
    assert tab.complaints == []


def test_dark_mode_has_light_text_on_dark_paper(open_tab: Open) -> None:
    colors = (
        "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    light, dark = (open_tab(dark=dark).run(colors) for dark in (False, True))
    assert _brightness(light[0]) < 100 < 200 < _brightness(light[1])
    assert _brightness(dark[1]) < 50 < 200 < _brightness(dark[0])


def _brightness(color: str) -> float:
    parts = [int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / len(parts)


def test_the_page_asks_for_nothing_but_itself(open_tab: Open, demo: Path) -> None:
    tab = open_tab()
    _click(tab, "last")
    assert tab.requests == [demo.resolve().as_uri()]


def test_on_paper_every_step_is_there_and_controls_are_gone(open_tab: Open) -> None:
    tab = open_tab()
    before = tab.run("document.querySelectorAll('details[open]').length")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.querySelectorAll('details.paper:not([open])').length") == 0
    steps = "[...document.querySelectorAll('details[open] caption')].map(c => c.textContent)"
    assert any("steps to a failing state" in caption for caption in tab.run(steps))
    tab.emulate_media("print")
    for gone in (".controls", ".values", ".card summary"):
        shown = f"getComputedStyle(document.querySelector('{gone}')).display"
        assert tab.run(shown) == "none"
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run("document.querySelectorAll('details[open]').length") == before


def test_text_has_contrast_in_both_modes(open_tab: Open) -> None:
    for dark in (False, True):
        tab = open_tab(dark=dark)
        names = ("--ink", "--muted", "--accent")
        for paper in ("--paper", "--surface"):
            for name in names:
                assert _contrast(_color(tab, name), _color(tab, paper)) >= 4.5, (dark, name)
        assert _contrast(_color(tab, "--on-accent"), _color(tab, "--accent")) >= 4.5


def _color(tab: Tab, name: str) -> str:
    style = "getComputedStyle(document.documentElement)"
    return str(tab.run(f"{style}.getPropertyValue('{name}')")).strip()


def _contrast(first: str, second: str) -> float:
    """Of two colours #rrggbb, as WCAG defines it."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_everything_to_operate_has_a_name(open_tab: Open) -> None:
    tab = open_tab()
    named = (
        "e.getAttribute('aria-label') || (e.labels && e.labels.length) || e.textContent.trim()"
        " || e.querySelector('img').alt"
    )
    asked = "document.querySelectorAll('button, select, input, a, [role=region]')"
    assert tab.run(f"[...{asked}].filter(e => !({named})).length") == 0
    assert tab.run("[...document.images].filter(i => !i.alt).length") == 0


def test_another_place_on_the_disk_does_as_well(
    browser: Browser, demo: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "a report & more.html"
    shutil.copy(demo, copy)
    tab = Tab(browser, copy)
    assert tab.run(STATUS).startswith("State 0 of")
    assert tab.complaints == []
    tab.close()
