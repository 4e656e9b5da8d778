from __future__ import annotations

from xml.etree import ElementTree

from safetest_gym.reports.curves import Chart, Series, nice_ticks


def _chart(percent: bool = True, values: tuple[float, ...] = (1.0, 0.25)) -> Chart:
    return Chart("Rates", "steps", [0, 100], [Series("a <b>", values)], percent)


def test_a_chart_is_well_formed_and_says_what_it_shows() -> None:
    root = ElementTree.fromstring(str(_chart().svg()))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Rates: a <b> from 100.0 % to 25.0 %."


def test_every_point_lies_inside_the_picture() -> None:
    root = ElementTree.fromstring(str(_chart(percent=False, values=(0, 737)).svg()))
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    for line in root.iter("polyline"):
        for pair in str(line.get("points")).split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_the_table_has_the_same_numbers() -> None:
    assert _chart().rows == [["0", "100.0 %"], ["100", "25.0 %"]]


def test_a_chart_of_nothing_but_zeros_is_drawn() -> None:
    chart = Chart("Faults", "steps", [0], [Series("open", [0])], percent=False)
    assert "NaN" not in chart.svg()


def test_ticks_are_round_and_not_beyond_the_end() -> None:
    for last in (1, 7, 99, 12_345, 2_000_000):
        ticks = nice_ticks(last, 4)
        assert ticks[0] == 0
        assert ticks[-1] <= last
        assert 2 <= len(ticks) <= 8
