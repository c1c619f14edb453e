"""Judgements run twice, four truths, a workbook read as text, and nobody's address."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from crowdwise.datasets.parsers import medical

HEADER = "_id,_worker_id,_country,_channel,_city,_ip,relations,sent_id,sentence,term1,term2\n"
FIRST = (
    "30,7,USA,elite,Reno,10.0.0.1,[CAUSES] [TREATS],801-FS1,late,A,B\n"
    "12,7,USA,elite,Reno,10.0.0.1,[TREATS],801-FS1,early,A,B\n"
    "13,11,GBR,neodev,Leeds,10.0.0.2,[NONE],801-FS1,by eleven,A,B\n"
)
SECOND = (
    "14,7,CAN,elite,Laval,10.0.0.3,[SIDE_EFFECT] [CAUSES],802,two,C,D\n"
    "15,11,GBR,neodev,Leeds,10.0.0.2,[TREATS],899,outside,E,F\n"
    "16,7,CAN,elite,Laval,10.0.0.3,[IS_A],899,outside,E,F\n"
)
KNOWN = (
    "SID,sentence_relation_score,baseline,expert,test_partition,term1,term2,sentence,"
    "UMLS_seed_relation\n"
    "801,0.9,1,-1,1,A,B,as published,may treat\n"
    "802,0.1,-1,-1,0,C,D,two,cause of\n"
    "803,0.2,-1,NA,NA,G,H,nobody saw it,cause of\n"
)
# SID, baseline and expert on three sheets; the third row of the first has no expert.
SHEETS = [
    [(801, 1, -1), (802, -1, -1), (803, -1, None), (899, 1, 1)],
    [(802, -1, -1)],
    [(803, -1, None)],
]


def workbook():
    """A spreadsheet with numbers in the columns A, E and F, and a word in B."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for number, rows in enumerate(SHEETS, start=1):
            cells = []
            for row, values in enumerate(rows, start=2):
                cells.append(f'<c r="B{row}" s="0" t="s"><v>17</v></c>')
                for letter, value in zip("AEF", values, strict=True):
                    if value is not None:
                        cells.append(f'<c r="{letter}{row}" s="0" t="n"><v>{value}</v></c>')
            archive.writestr(f"xl/worksheets/sheet{number}.xml", "".join(cells))
    return buffer.getvalue()


@pytest.fixture
def files(published):
    return published(
        RelEx_batch_01__csv=HEADER + FIRST,
        RelEx_batch_02__csv=HEADER + SECOND,
        ground_truth_cause__csv=KNOWN,
        ground_truth_treat__csv=KNOWN,
        ground_truth_cause__xlsx=workbook(),
        ground_truth_treat__xlsx=workbook(),
    )


def rows(tables):
    return tables.annotations.astype({"worker": str}).to_numpy().tolist()


def test_the_first_answer_counts_and_sets_are_sorted(files):
    tables = medical.relations(files)
    assert rows(tables) == [
        ["801", "7", "TREATS"],
        ["801", "11", "NONE"],
        ["802", "7", "CAUSES|SIDE_EFFECT"],
        ["899", "7", "IS_A"],
        ["899", "11", "TREATS"],
    ]


def test_one_relation_is_a_binary_question_on_known_sentences(files):
    treats = medical.parse(files, relation="treat", truth="expert")
    assert rows(treats) == [["801", "7", 1], ["801", "11", 0], ["802", "7", 0]]
    causes = medical.parse(files, relation="cause", truth="expert")
    assert causes.annotations["label"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("adjudicated", {"801": 1}),
        ("expert", {"801": 0, "802": 0}),
        ("distant_supervision", {"801": 1, "802": 0, "803": 0}),
        ("lia_paper", {"801": 0, "802": 1, "899": 1}),
    ],
)
def test_four_truths(files, rule, expected):
    assert medical.parse(files, relation="cause", truth=rule).truth.to_dict() == expected


def test_what_lia_scored_is_labeled_even_outside_the_known_sentences(files):
    tables = medical.parse(files, relation="treat", truth="lia_paper")
    assert set(tables.annotations["task"]) == {"801", "802", "899"}


def test_sentences_are_as_workers_saw_them(files):
    assert medical.parse(files, relation="treat", truth="expert").items["text"].to_dict() == {
        "801": "early",
        "802": "two",
    }
    items = medical.relations(files).items
    assert items["text"].to_dict() == {
        "801": "early",
        "802": "two",
        "803": "nobody saw it",
        "899": "outside",
    }
    assert items["in_ground_truth"].tolist() == [1, 1, 1, 0]
    assert items["has_worker_labels"].tolist() == [1, 1, 0, 1]


def test_sheets_are_the_split(files):
    split = medical.workbook_split(files, "treat")
    assert list(split.items()) == [
        *((task, "train") for task in ("801", "802", "803", "899")),
        ("802", "dev"),
        ("803", "test"),
    ]
    assert medical.parse(files, relation="cause", truth="expert").split is None


def test_of_the_workers_only_country_and_channel_are_taken(files):
    workers = medical.relations(files).workers
    assert workers.columns.tolist() == ["country", "channel", "n_labels"]
    assert workers.loc[7].tolist() == ["CAN", "elite", 3]  # where most labels came from
    assert "10.0.0" not in str(medical.judgments(files).to_numpy().tolist())
    assert "Reno" not in str(medical.judgments(files).to_numpy().tolist())


def test_published_judgments_come_along_as_they_are(files):
    truth = medical.relations(files).extra["truth_cause"]
    assert truth.loc["803"].tolist() == ["", "", "-1", "0.2", "cause of"]
