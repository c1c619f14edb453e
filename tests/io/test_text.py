"""CSV and TSV: headers, delimiters, quotes, encodings, and two ways to parse them."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.errors import FormatError
from crowdwise.io import cells as cells_module
from crowdwise.io import text as text_module
from crowdwise.io.cells import encode_cells
from crowdwise.io.document import File
from crowdwise.io.text import TextTable


def table(text, name="t.csv", **options):
    data = text if isinstance(text, bytes) else text.encode()
    return TextTable(File(name, data=data), **options)


def rows(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


@pytest.mark.parametrize("delimiter", list(",\t;|"))
def test_finds_the_delimiter(delimiter):
    text = delimiter.join(["task", '"a,b;c"', "label"]) + "\n" + delimiter.join("123") + "\n"
    parsed = table(text)
    assert parsed.columns == ["task", "a,b;c", "label"]
    assert rows(parsed.frame(["label", "task"])) == [["3", "1"]]


def test_a_tab_is_taken_at_its_word_if_it_is_there():
    assert table("a,b\tc\n1\t2\n", delimiter="\t").columns == ["a,b", "c"]
    assert table("a,b\n1,2\n", delimiter="\t").columns == ["a", "b"]


def test_byte_order_mark_blank_lines_and_spaces_in_the_header():
    parsed = table(b"\xef\xbb\xbf\r\n\r\n task ,label\r\n1,2\r\n\r\n3,4\r\n")
    assert parsed.columns == ["task", "label"]
    assert rows(parsed.frame(["task"])) == [["1"], ["3"]]


def test_only_an_empty_cell_is_missing():
    parsed = table('a,b\nNA,""\nnull,None\n,nan\n')
    assert rows(parsed.frame(["a", "b"])) == [["NA", None], ["null", "None"], [None, "nan"]]


def test_cells_may_hold_delimiters_quotes_and_line_breaks():
    parsed = table('a,"b\nc"\n"x,""y""","1\n2"\n')
    assert parsed.columns == ["a", "b\nc"]
    assert rows(parsed.frame(["a", "b\nc"])) == [['x,"y"', "1\n2"]]


def test_a_delimiter_at_the_end_of_every_row_is_harmless():
    assert rows(table("a,b\n1,2,\n3,4,\n").frame(["b"])) == [["2"], ["4"]]


def test_short_rows_are_missing_their_last_cells():
    assert rows(table("a,b\n1\n2,3\n").frame(["a", "b"])) == [["1", None], ["2", "3"]]


def test_long_rows_are_refused_wherever_they_are(monkeypatch):
    with pytest.raises(FormatError, match=r"does not match its 2 columns(.|\n)*row 2 has 3 cells"):
        table("a,b\n1,2\n1,2,3\n")
    monkeypatch.setattr(text_module, "HEAD", 8)
    with pytest.raises(FormatError, match=r"line 3, saw 3"):
        table("a,b\n1,2\n1,2,3\n4,5\n").frame(["a"])


def test_a_title_above_the_columns_is_refused_with_advice():
    with pytest.raises(FormatError, match=r"'# exported'(.|\n)*remove what stands above the line"):
        table("# exported\na,b\n1,2\n")


def test_a_quote_that_never_ends_is_refused():
    with pytest.raises(FormatError, match=r"does not match its 2 columns(.|\n)*EOF inside string"):
        table('a,b\n1,"2\n3,4\n').frame(["a"])


def test_cells_may_be_long():
    usual = csv.field_size_limit()
    long = "a" * 200_000
    assert table(long + ",b\n").columns == [long, "b"]
    assert rows(table(f"a,b\n1,{long}\n").frame(["a", "b"])) == [["1", long]]
    assert csv.field_size_limit() == usual


@pytest.mark.parametrize("data", ["a,b\nä,ö\n".encode("latin-1"), "a,b\n1,2\n".encode("utf-16")])
def test_other_encodings_are_refused(data):
    with pytest.raises(FormatError, match=r"UTF-(8|16)(.|\n)*byte 0x(.|\n)*encoding UTF-8"):
        table(data)


def test_other_encodings_are_refused_after_the_head(monkeypatch):
    monkeypatch.setattr(text_module, "HEAD", 8)
    with pytest.raises(FormatError, match="UTF-8"):
        table(b"a,b\n1,2\n3,4\n5,\xff\n").frame(["a"])


def test_a_long_header_is_read_whole(monkeypatch):
    monkeypatch.setattr(text_module, "HEAD", 8)
    names = [f"worker-{k}" for k in range(50)]
    assert table(",".join(names) + "\n" + ",".join("1" * 50) + "\n").columns == names


def test_records_keep_columns_of_the_same_name_apart_from_the_rest():
    assert table("a,b\n1,\n").records() == [{"a": "1", "b": None}]


def test_rows_in_several_pieces(monkeypatch):
    whole = table("a\nx\ny\nx\n\nz\ny\n").frame(["a"])
    monkeypatch.setattr(text_module, "ROWS", 2)
    pieces = table("a\nx\ny\nx\n\nz\ny\n").frame(["a"])
    assert rows(pieces) == rows(whole) == [["x"], ["y"], ["x"], ["z"], ["y"]]


letters = st.characters(codec="utf-8", exclude_characters="\0")
cells = st.text(letters, max_size=5) | st.sampled_from(["NA", "null", "", "1.0", "007"])


@settings(max_examples=100)
@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=30),
    st.sampled_from(",\t;"),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 40),
)
def test_compiled_loops_and_pandas_read_the_same(body, delimiter, quoting, end, block):
    if quoting == csv.QUOTE_MINIMAL:  # which leaves some ends of lines without quotes
        body = [[cell.replace("\r", "") for cell in row] for row in body]
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([("task", "worker", "label"), *body])
    parsed = table(stream.getvalue())
    wanted = {"label": 2, "task": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "BLOCK", block)
        fast = parsed._with_loops(wanted)
    assert fast is not None
    assert rows(fast) == rows(parsed._with_pandas(wanted))


alike = st.text("a\0b\U0001f600\uffff", max_size=3).map(lambda end: "the same beginning/" * 2 + end)


@settings(max_examples=60)
@given(st.lists(st.text(letters, max_size=20) | alike | st.text("ab\0", max_size=12), max_size=80))
def test_compiled_loops_sort_texts_as_python_does(texts):
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *((t, "x") for t in texts)])
    file = File("the export", data=stream.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "BLOCK", 64)
        patch.setattr(cells_module, "count_threads", lambda: 3)
        found = encode_cells(file, ",", 2, [0])
    assert found is not None
    assert found[0].categories.tolist() == sorted(set(texts) - {""})
    assert found[0].tolist() == [text or np.nan for text in texts]


def test_big_files_give_the_same_annotations_either_way(monkeypatch, tmp_path):
    path = tmp_path / "votes.csv"
    lines = [
        f"task-{k * 7 % 500},worker-{k % 13},{['yes', 'no', 'maybe'][k % 3]}" for k in range(2000)
    ]
    path.write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    plain = cw.read(path)
    monkeypatch.setattr(text_module, "BIG", 0)
    assert cw.read(path).equals(plain)
    monkeypatch.setattr(cells_module, "BLOCK", 1000)
    assert cw.read(path).equals(plain)
    monkeypatch.setattr("crowdwise.compiled.native", None)
    assert cw.read(path).equals(plain)


def test_compiled_loops_give_up_where_pandas_goes_on(monkeypatch):
    monkeypatch.setattr(text_module, "BIG", 0)
    assert rows(table("a,b\n1\n2,3\n").frame(["a", "b"])) == [["1", None], ["2", "3"]]


@pytest.mark.parametrize(
    "body",
    [
        b"1\n",  # too few cells
        b"1,2,3\n",  # too many
        b'5" pipe,2\n',  # a quote inside
        b'"1"x,2\n',  # text behind a quote
        b'"1,2\n',  # a quote that does not end
        b"1,2\r3,4\n",  # lines that end in another way
        b"\xff,2\n",  # not UTF-8
        b"\xed\xa0\x80,2\n",  # half a character
    ],
)
def test_compiled_loops_take_regular_rows_of_utf8_alone(body, monkeypatch):
    monkeypatch.setattr(cells_module, "BLOCK", 4)
    for before in (b"", b"7,8\n" * 20):
        file = File("the export", data=b"a,b\n" + before + body)
        assert encode_cells(file, ",", 2, [0, 1]) is None
        assert encode_cells(file, ",", 2, [1]) is None or body.startswith((b"\xff", b"\xed"))


def test_compiled_loops_stop_at_a_row_without_an_end(monkeypatch):
    monkeypatch.setattr(cells_module, "BLOCK", 8)
    monkeypatch.setattr(cells_module, "LARGEST", 64)
    assert encode_cells(File("the export", data=b"a,b\n1," + b"x" * 100), ",", 2, [0]) is None


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n", "\n\n\n", "\ufeff"])
def test_blank_lines_before_the_header_of_a_big_file(blank, monkeypatch):
    monkeypatch.setattr(text_module, "BIG", 0)
    parsed = table(blank + "a,b\n1,2\n\n3,4\n")
    assert parsed._with_loops({"a": 0}) is not None
    assert rows(parsed.frame(["a", "b"])) == [["1", "2"], ["3", "4"]]
