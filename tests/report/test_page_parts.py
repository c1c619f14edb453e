"""Templates and drawings: text from the data stays text."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from crowdwise.report.page.charts import (
    Curve,
    IntervalRow,
    bar_chart,
    heat_chart,
    interval_chart,
    line_chart,
    scatter_chart,
)
from crowdwise.report.page.document import environment
from crowdwise.report.page.figures import Figure
from crowdwise.report.page.svg import Scale, drawing, margin, mark, ticks, words
from crowdwise.report.page.tables import Column, Table, round_values
from crowdwise.report.page.words import (
    DASH,
    between,
    clean,
    clean_facts,
    duration,
    name,
    number,
    share,
    shares_between,
    shorten,
)

HOSTILE = (
    """<img src=x onerror=alert(1)>"'</script><script>alert(2)</script>&amp;\u2028\x00\ud800"""
)


def rendered(template, **values):
    parts = '{% from "parts.html.j2" import section, note, figure, fixed_table, data_table %}'
    return environment().from_string(parts + template).render(values)


def test_text_and_attributes_of_templates_are_escaped():
    made = rendered('<p title="{{ text }}">{{ text }}</p>', text=clean(HOSTILE))
    assert made.count("<") == 2
    attribute = re.search(r'title="([^"]*)"', made).group(1)
    assert html.unescape(attribute) == clean(HOSTILE)
    assert html.unescape(made.partition(">")[2].removesuffix("</p>")) == clean(HOSTILE)


def test_text_and_attributes_of_drawings_are_escaped():
    shapes = [words(1, 1, HOSTILE, most=500), mark(1, 1, 0, HOSTILE), mark(1, 1, 1, HOSTILE)]
    made = drawing(10, shapes, HOSTILE)
    assert made.count("<") == 6
    assert made.count(">") == 6
    assert made.count('"') % 2 == 0
    assert [html.unescape(tip) for tip in re.findall(r'data-tip="([^"]*)"', made)] == [HOSTILE] * 2
    assert html.unescape(re.search(r'aria-label="([^"]*)"', made).group(1)) == HOSTILE


def test_what_no_file_can_hold_is_replaced():
    assert clean("a\x00b\x1fc\ud800d\te\x85") == "a\ufffdb\ufffdc?d\te\ufffd"


def test_facts_are_cleaned_through_and_through():
    figure = Figure("a\x00", "b", "c", None, ["d\x00"], (("e\x00", 1),), key={"f": "g\x00"})
    made = clean_facts(figure)
    assert made.id == "a\ufffd"
    assert made.columns == ["d\ufffd"]
    assert made.rows == (("e\ufffd", 1),)
    assert made.key == {"f": "g\ufffd"}


def test_data_cannot_end_their_element():
    block = rendered("<script>{{ value|tojson }}</script>", value={"name": clean(HOSTILE), "é": 1})
    assert block.lower().count("</script") == 1
    assert "<img" not in block
    inside = block.partition(">")[2].rpartition("<")[0]
    assert json.loads(inside)["name"] == clean(HOSTILE)
    assert '"é":1' in inside  # as it is, and without blanks: a page may have many names


def test_what_is_not_a_number_cannot_get_into_the_data():
    with pytest.raises(ValueError, match="not JSON compliant"):
        rendered("{{ value|tojson }}", value=float("nan"))


def test_a_misspelled_name_in_a_template_is_an_error():
    with pytest.raises(UndefinedError):
        rendered("{{ nothing }}")


def test_names_are_kept_apart_and_short():
    assert name("<x>") == "<bdi>&lt;x&gt;</bdi>"
    assert shorten("abcdefghijklmnop", 10) == "abcdef…nop"
    assert len(shorten("a" * 500, 60)) == 60


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


def test_marks_differ_by_shape_as_well_as_by_color():
    shapes = [re.sub(r"s\d", "", mark(5, 5, kind, "x")) for kind in range(4)]
    assert len(set(shapes)) == 4


def test_words_for_numbers():
    assert share(0.256) == "26%"
    assert share(float("nan")) == DASH
    assert number(-0.256) == "\u22120.26"
    assert between(0.1, float("nan")) == ""
    assert shares_between(0.251, 0.312) == "25% to 31%"
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
    assert round_values(values) == [0.1235, None, 1.0]
    assert round_values([("a", 2, float("inf"))]) == [["a", 2, None]]


class TestCharts:
    def test_a_bar_for_each_count(self):
        picture = bar_chart(["1", "2"], [30, 10], "labels", "label", "per task")
        assert "1 labels: 30" in picture
        assert "per task</text>" in picture
        heights = [float(x) for x in re.findall(r'<rect [^>]*height="([\d.]+)"', picture)]
        assert heights[0] == pytest.approx(3 * heights[1], abs=0.3)
        assert 'aria-label="label"' in picture
        assert "2 labels: 10" in picture

    def test_intervals_lie_around_their_values(self):
        rows = [IntervalRow("a", 0.5, 0.4, 0.7, "50%"), IntervalRow("b", float("nan"), 0, 0, DASH)]
        picture = interval_chart(rows, "label", share, (0, 1))
        [(left, right)] = re.findall(r'<line x1="([\d.]+)"[^>]*x2="([\d.]+)"[^>]*whisker', picture)
        [middle] = re.findall(r'cx="([\d.]+)"', picture)
        assert float(left) < float(middle) < float(right)

    def test_cells_are_shaded_by_their_values(self):
        cells = np.array([[1.0, -0.5], [0.0, np.nan]])
        picture = heat_chart(cells, ["a", "b"], ["c", "d"], "label", share, lambda i, j: f"{i}{j}")
        shades = [float(x) for x in re.findall(r'fill-opacity="([\d.]+)"', picture)]
        assert shades[0] > shades[1] > shades[2] > 0
        assert picture.count("mark s1") == 1
        assert picture.count("mark none") == 1

    def test_a_point_for_each_place(self):
        picture = scatter_chart(
            np.array([0.0, 1.0]), np.array([0.0, 1.0]), [0, 0], ["one", "two"], "label"
        )
        places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', picture)
        assert float(places[0][0]) < float(places[1][0])
        assert float(places[0][1]) > float(places[1][1])  # up is more

    def test_a_line_leaves_out_what_is_not_known(self):
        curve = Curve("a", [1, 2, 3], [0.2, float("nan"), 0.6], 0, [0.1, 0, 0.5], [0.3, 0, 0.7])
        picture = line_chart([curve], "label", "labels", share, at=2.5)
        points = re.search(r'<polyline points="([^"]*)"', picture).group(1).split()
        assert len(points) == 2
        assert "NaN" not in picture
        assert "nan" not in picture


def test_a_fixed_table_has_a_head_for_each_column():
    made = rendered('{% call fixed_table("cap", ["a", ("b", "right")]) %}<tr></tr>{% endcall %}')
    assert '<th scope="col">a</th>' in made
    assert '<th scope="col" class="right">b</th>' in made
    assert "<tbody><tr></tr></tbody>" in made
    assert 'aria-label="cap"' in made


def test_a_figure_has_its_title_picture_and_key():
    figure = Figure("c", "Title", "Reading", Markup("<svg></svg>"), ["n"], [[1]])
    made = rendered("{{ figure(chart) }}", chart=figure)
    assert 'id="chart-c"' in made
    assert "<strong>Title</strong> <span>Reading</span>" in made
    assert '<div class="canvas"><svg></svg></div>' in made
    assert made.count('data-of="c"') == 2
    assert "key" not in made
    keyed = replace(figure, key=((Markup("<circle/>"), "<cat>"),))
    assert "<circle/></svg> <bdi>&lt;cat&gt;</bdi>" in rendered("{{ figure(chart) }}", chart=keyed)
    assert rendered("{{ figure(chart) }}", chart=None).strip() == ""


def test_a_table_for_the_script_says_how_to_show_it():
    columns = [Column("Who", "name", ["a"]), Column("Right", "share", [0.5], about="of all")]
    table = Table("t", "Cap", columns, "Search it", "Who", (1, False))
    made = rendered("{{ data_table(table) }}", table=table)
    assert 'class="right"><button type="button" title="of all">Right</button>' in made
    assert 'class=""><button type="button">Who</button>' in made
    assert 'class="details"' not in made
    assert table.for_script()["order"] == [1, False]
    shown = rendered("{{ data_table(table) }}", table=replace(table, details="confusion"))
    assert 'class="details"' in shown


def test_a_margin_fits_the_longest_text_up_to_a_limit():
    assert margin([], 10) == 14
    assert margin(["a", "abcd"], 10) == margin(["abcd"], 10) > margin(["a"], 10)
    assert margin(["a" * 50], 10) == margin(["a" * 90], 10)
