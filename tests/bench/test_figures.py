from __future__ import annotations

from xml.etree import ElementTree

from safetest_gym.bench.figures import BarFigure, LineFigure

SVG = "{http://www.w3.org/2000/svg}"


def _marks(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


def test_a_line_figure_is_xml_with_a_polyline_per_series() -> None:
    series = {"ours": [(1.0, 2.0), (2.0, 4.0)], "<other>": [(1.0, 1.0), (2.0, 1.0)]}
    figure = LineFigure(title="a & b", x_name="x", y_name="y", series=series)
    assert len(_marks(figure.svg(), "polyline")) == 2


def test_a_logarithmic_axis_places_equal_factors_at_equal_distances() -> None:
    series = {"ours": [(0.001, 1.0), (0.1, 1.0), (10.0, 1.0)]}
    figure = LineFigure(title="t", x_name="x", y_name="y", series=series, log_x=True)
    xs = [float(mark.attrib["cx"]) for mark in _marks(figure.svg(), "circle")]
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2


def test_a_scatter_has_marks_and_the_diagonal_only() -> None:
    series = {"ours": [(1.0, 2.0), (3.0, 4.0)]}
    figure = LineFigure(
        title="t", x_name="x", y_name="y", series=series, joined=False, diagonal=True
    )
    assert len(_marks(figure.svg(), "circle")) == 2
    assert len(_marks(figure.svg(), "polyline")) == 1


def test_bars_are_as_high_as_their_values_and_missing_ones_left_out() -> None:
    figure = BarFigure(
        title="t", y_name="y", groups=["a", "b"], series={"ours": [10.0, 5.0], "x": [None, 0.0]}
    )
    bars = [bar for bar in _marks(figure.svg(), "rect") if bar.attrib["fill"] == "#0b6e99"]
    heights = [float(bar.attrib["height"]) for bar in bars if bar.attrib["width"] != "11"]
    assert heights[0] == 2 * heights[1]


def test_figures_without_data_can_be_drawn() -> None:
    assert "<svg" in LineFigure(title="t", x_name="x", y_name="y", series={}, log_x=True).svg()
    assert "<svg" in BarFigure(title="t", y_name="y", groups=[], series={}).svg()
