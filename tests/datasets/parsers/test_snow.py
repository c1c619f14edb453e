"""PublishedTables of Snow et al.: labels and gold on every row, texts elsewhere."""

import pytest

from crowdwise.datasets.parsers import snow

HEADER = "!amt_annotation_ids\t!amt_worker_ids\torig_id\tresponse\tgold\n"


def rows(*lines):
    return HEADER + "".join("\t".join(["x", *line]) + "\n" for line in lines)


ROWS = rows(
    ("A", "2", "7", "1"), ("B", "2", "4", "1"), ("A", "1", "5", "2.5"), ("B", "1", "0", "2.5")
)


def test_labels_and_gold(published):
    tables = snow.parse(published(a__tsv=ROWS), file="a.tsv")
    assert tables.annotations.to_numpy().tolist() == [
        ["2", "A", "7"],
        ["2", "B", "4"],
        ["1", "A", "5"],
        ["1", "B", "0"],
    ]
    assert tables.truth.to_dict() == {"2": "1", "1": "2.5"}


def test_entailment_pairs_are_those_that_were_labeled(published):
    pairs = 'id\tvalue\ttask\ttext\thypothesis\n1\tTRUE\tCD\tHe said "no\tHe spoke\n'
    pairs += "9\tTRUE\tCD\tunused\tunused\n2\tFALSE\tIE\tRain\tSun\n"
    items = snow.rte(published(a__tsv=ROWS, rte1__tsv=pairs), file="a.tsv").items
    assert items.index.tolist() == ["1", "2"]
    assert items.loc["1"].tolist() == [
        'He said "no [SEP] He spoke',
        'He said "no',
        "He spoke",
        "CD",
    ]


def test_only_the_event_words_are_taken(published):
    words = "orig_id,event1,event2,text\n2,<font>fell</font>,<b>rose</b>,<p>secret</p>\n1,,,\n"
    items = snow.temp(published(a__tsv=ROWS, temp__standardized__csv=words), file="a.tsv").items
    assert items.loc["2"].tolist() == ["fell ... rose", "fell", "rose"]
    assert "secret" not in items.to_string()


@pytest.mark.parametrize(
    ("variant", "labels", "truth"),
    [
        ("binary", [1, 0, 1, 0], {"2": 0, "1": 1}),
        ("raw", ["7", "4", "5", "0"], {"2": "1", "1": "2.5"}),
    ],
)
def test_similarity_is_cut_at_the_middle_of_each_scale(published, variant, labels, truth):
    tables = snow.wordsim(published(a__tsv=ROWS), file="a.tsv", variant=variant)
    assert tables.annotations["label"].tolist() == labels
    assert tables.truth.to_dict() == truth
    assert tables.items["text"].to_dict() == {"2": "2", "1": "1"}


def test_a_feeling_is_a_file(published):
    headlines = "id\theadline\n1\tAll well\n2\tStorm\n3\tUnrated\n"
    files = published(joy__standardized__tsv=ROWS, affect__tsv=headlines)
    tables = snow.affect(files, variant="joy")
    assert tables.items["text"].to_dict() == {"1": "All well", "2": "Storm"}
    assert len(tables.annotations) == 4
