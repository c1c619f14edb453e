"""Markup: text from the data stays text."""

import html
import json
import re

import numpy as np
import pytest

from crowdwise.report.page.charts import (
    Curve,
    Row,
    bar_chart,
    heat_chart,
    interval_chart,
    line_chart,
    scatter_chart,
)
from crowdwise.report.page.html import Markup, clean, data_block, join, name, shortened, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, rounded
from crowdwise.report.page.svg import Scale, mark, ticks
from crowdwise.report.page.words import DASH, between, duration, number, share

HOSTILE = (
    """<img src=x onerror=alert(1)>"'</script><script>alert(2)</script>&amp;\u2028\x00\ud800"""
)


def test_text_and_attributes_are_escaped():
    made = tag("p", HOSTILE, title=HOSTILE)
    assert "<img" not in made
    assert "<script" not in made
    assert made.count("<") == 2
    attribute = re.search(r'title="([^"]*)"', made).group(1)
    assert html.unescape(attribute) == clean(HOSTILE)


def test_markup_is_passed_on_and_lists_are_opened():
    assert join("a<", Markup("<b>"), ["c", None, ("d",)]) == "a&lt;<b>cd"
    assert tag("p", tag("b", "x"), hidden=True, title=None, lang=False) == "<p hidden><b>x</b></p>"
    assert tag("line", x1=1, class_="a", view_box="0") == '<line x1="1" class="a" viewBox="0"/>'


def test_what_no_file_can_hold_is_replaced():
    assert clean("a\x00b\x1fc\ud800d\te") == "a\ufffdb\ufffdc?d\te"


def test_data_cannot_end_their_element():
    block = data_block("facts", {"name": clean(HOSTILE)})
    assert block.lower().count("</script") == 1
    assert "<img" not in block
    inside = block.partition(">")[2].rpartition("<")[0]
    assert json.loads(inside)["name"] == clean(HOSTILE)


def test_names_are_kept_apart_and_short():
    assert name("<x>") == "<bdi>&lt;x&gt;</bdi>"
    assert shortened("abcdefghijklmnop", 10) == "abcdef…nop"
    assert len(shortened("a" * 500, 60)) == 60


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 12345), (-0.3, 1), (0.52, 0.53), (1, 8), (3, 3)]
)
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert len(found) <= 8
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    assert all(str(value) != "-0.0" for value in found)
    assert low == high or len(found) >= 2


def test_ticks_of_counts_are_whole():
    assert ticks(0, 2, 5, least=1) == [0, 1, 2]


def test_a_scale_goes_from_start_to_stop():
    scale = Scale(10, 20, 100, 0)
    assert (scale(10), scale(15), scale(20)) == (100, 50, 0)


def test_marks_differ_by_shape_as_well_as_by_colour():
    shapes = [re.sub(r"s\d", "", mark(5, 5, kind, "x")) for kind in range(4)]
    assert len(set(shapes)) == 4


def test_words_for_numbers():
    assert share(0.256) == "26%"
    assert share(float("nan")) == DASH
    assert number(-0.256) == "\u22120.26"
    assert between(0.1, float("nan")) == ""
    assert between(0.1, 0.25) == "0.10 to 0.25"
    assert [duration(s) for s in (3.14, 600, 7300, 400_000)] == [
        "3.1 s",
        "10.0 min",
        "2.0 h",
        "4.6 d",
    ]
    assert duration(3.5, "") == "3.5"


def test_numbers_for_the_script_are_short_and_have_no_nan():
    values = np.array([0.123456, np.nan, 1.0])
    assert rounded(values) == [0.1235, None, 1.0]
    assert rounded([("a\x00", 2, float("inf"))]) == [["a\ufffd", 2, None]]


class TestCharts:
    def test_a_bar_for_each_count(self):
        picture = bar_chart(["1", "2"], [30, 10], "labels", "told")
        heights = [float(x) for x in re.findall(r'<rect [^>]*height="([\d.]+)"', picture)]
        assert heights[0] == pytest.approx(3 * heights[1], abs=0.3)
        assert 'aria-label="told"' in picture
        assert "2 labels: 10" in picture

    def test_intervals_lie_around_their_values(self):
        rows = [Row("a", 0.5, 0.4, 0.7, "50%"), Row("b", float("nan"), 0, 0, DASH)]
        picture = interval_chart(rows, "told", share, (0, 1))
        [(left, right)] = re.findall(r'<line x1="([\d.]+)"[^>]*x2="([\d.]+)"[^>]*whisker', picture)
        [middle] = re.findall(r'cx="([\d.]+)"', picture)
        assert float(left) < float(middle) < float(right)

    def test_cells_are_shaded_by_their_values(self):
        cells = np.array([[1.0, -0.5], [0.0, np.nan]])
        picture = heat_chart(cells, ["a", "b"], ["c", "d"], "told", share, lambda i, j: f"{i}{j}")
        shades = [float(x) for x in re.findall(r'fill-opacity="([\d.]+)"', picture)]
        assert shades[0] > shades[1] > shades[2] > 0
        assert picture.count("mark s1") == 1
        assert picture.count("mark none") == 1

    def test_a_point_for_each_place(self):
        picture = scatter_chart(
            np.array([0.0, 1.0]), np.array([0.0, 1.0]), [0, 0], ["one", "two"], "told"
        )
        places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', picture)
        assert float(places[0][0]) < float(places[1][0])
        assert float(places[0][1]) > float(places[1][1])  # up is more

    def test_a_line_leaves_out_what_is_not_known(self):
        curve = Curve("a", [1, 2, 3], [0.2, float("nan"), 0.6], 0, [0.1, 0, 0.5], [0.3, 0, 0.7])
        picture = line_chart([curve], "told", "labels", share, at=2.5)
        points = re.search(r'<polyline points="([^"]*)"', picture).group(1).split()
        assert len(points) == 2
        assert "NaN" not in picture
        assert "nan" not in picture


def test_tables_carry_their_columns_and_heads_follow_their_cells():
    made = fixed_table("cap", ("a", "b"), [("x", ("1", "right quiet"))])
    assert '<th scope="col" class="right">b</th>' in made
    assert '<td class="right quiet">1</td>' in made
    sheet = Sheet()
    sheet.chart("c", "Title", "Reading", Markup("<svg></svg>"), ["n\x00"], [[float("nan")]])
    assert sheet.charts["c"] == {"columns": ["n\ufffd"], "rows": [[None]]}
