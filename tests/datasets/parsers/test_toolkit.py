"""The toolkit's headless tables, and sentences known by their rank."""

from crowdwise.datasets.parsers import toolkit

ROWS = "A,4,1,0,298\nB,4,0,0,6\nA,2,1,1,7\n"


def test_columns_are_worker_task_label_truth(published):
    tables = toolkit.parse(published(a__csv=ROWS), file="a.csv")
    assert tables.annotations.to_numpy().tolist() == [
        ["4", "A", "1"],
        ["4", "B", "0"],
        ["2", "A", "1"],
    ]
    assert tables.truth.to_dict() == {"4": "0", "2": "1"}


def test_a_sentence_is_known_by_its_rank_among_pure_ones(published):
    files = {"a__csv": ROWS, "rt-polarity__pos": b"good\ncaf\xe9\nfine \n"}
    tables = toolkit.polarity(published(**files, **{"rt-polarity__neg": b"dull\nbad\n"}), "a.csv")
    assert tables.items["text"].to_dict() == {"1": "good", "2": "fine", "3": "dull", "4": "bad"}
    assert tables.truth.to_dict() == {"1": 1, "2": 1, "3": 0, "4": 0}
    assert tables.split.to_dict() == {"1": "test", "2": "train", "3": "test", "4": "train"}
