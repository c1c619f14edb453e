"""Excel workbooks."""

import io
import sys
import zipfile

import pytest
from openpyxl import Workbook

import crowdwise as cw
from crowdwise.errors import FormatError, MissingExtraError
from crowdwise.io import unpack

HEADER = ["task", " worker ", "label"]
ROWS = [[1, "ann", True], [1, "bob", False], [2, "ann", None]]


@pytest.fixture
def book(tmp_path):
    """Write sheets, given as lists of rows, to a workbook."""

    def write(name="votes.xlsx", **sheets):
        whole = Workbook()
        whole.remove(whole.active)
        for title, rows in sheets.items():
            sheet = whole.create_sheet(title)
            for row in rows:
                sheet.append(row)
        whole.save(tmp_path / name)
        return tmp_path / name

    return write


def test_cells_keep_their_types(book, triples):
    taken = cw.read(book(votes=[HEADER, *ROWS]))
    assert triples(taken) == [(1, "ann", True), (1, "bob", False)]
    assert "rows without a label left out: 1" in taken.notes


def test_empty_rows_columns_and_sheets_do_not_matter(book, triples):
    rows = [[], [None, *HEADER, None], [], *([None, *row] for row in ROWS)]
    assert len(triples(cw.read(book(empty=[], votes=rows)))) == 2


def test_in_a_stream_and_in_an_archive(book, tmp_path, triples):
    path = book(votes=[HEADER, *ROWS])
    assert len(triples(cw.read(io.BytesIO(path.read_bytes())))) == 2
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(path, "votes.xlsx")
    assert len(triples(cw.read(tmp_path / "all.zip"))) == 2


def test_merged_headers_are_refused_with_advice(book):
    rows = [["Item", "Annotators", None, None], [None, "ann", "bob", "cat"], [1, "x", "y", "x"]]
    with pytest.raises(FormatError, match=r"2 columns without a name[\s\S]*without merged cells"):
        cw.read(book(votes=rows))


def test_two_sheets_are_too_many(book):
    with pytest.raises(FormatError, match=r"2 sheets(.|\n)*'a', 'b'(.|\n)*as CSV"):
        cw.read(book(a=[HEADER, *ROWS], b=[["x"]]))
    with pytest.raises(FormatError, match="no sheets that are not empty"):
        cw.read(book(a=[]))


def test_a_formula_that_failed(book):
    with pytest.raises(FormatError, match=r"whose formula failed(.|\n)*row 2(.|\n)*#N/A"):
        cw.read(book(a=[HEADER, [1, "ann", "#N/A"]]))


def test_a_formula_without_its_result(book):
    with pytest.raises(FormatError, match=r"a formula without its result(.|\n)*row 2: =1\+1"):
        cw.read(book(a=[HEADER, [1, "ann", "=1+1"]]))


def test_a_damaged_workbook(tmp_path):
    path = tmp_path / "votes.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(FormatError, match=r"cannot be read(.|\n)*a complete Excel workbook"):
        cw.read(path)


def test_a_bomb_is_not_opened(book, monkeypatch):
    monkeypatch.setattr(unpack, "ROOM", 1 << 10)
    monkeypatch.setattr(unpack, "RATIO", 1)
    with pytest.raises(FormatError, match="unpacks to more than"):
        cw.read(book(a=[HEADER, *([[1, "ann", "x" * 1000]] * 1000)]))


def test_says_what_to_install(book, monkeypatch):
    path = book(a=[HEADER, *ROWS])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"needs openpyxl(.|\n)*crowdwise\[excel\]"):
        cw.read(path)
