"""Folders of one archive, in the several dialects of its tables."""

from io import BytesIO
from zipfile import ZipFile

from crowdwise.datasets.parsers import zheng


def archive(**members):
    buffer = BytesIO()
    with ZipFile(buffer, "w") as packed:
        for name, text in members.items():
            packed.writestr(f"datasets/some folder/{name.replace('__', '.')}", text)
    return buffer.getvalue()


ANSWERS = "question,worker,answer\r\n1_2_0,A1,0\r\n3_2_1,B2,1\r\n3_2_1,A1,0\r\n"
TRUTH = "question,truth\r1_2_0,0\r3_2_1,1\r"


def test_labels_and_truth(published):
    files = published(datasets__zip=archive(answer__csv=ANSWERS, truth__csv=TRUTH))
    tables = zheng.parse(files, folder="some folder")
    assert tables.annotations.columns.tolist() == ["task", "worker", "label"]
    assert tables.annotations["worker"].tolist() == ["A1", "B2", "A1"]
    assert tables.truth.to_dict() == {"1_2_0": "0", "3_2_1": "1"}


def test_products_have_names(published):
    records = "['id', 'name']\n[1, 'Turntable']\n[2, \"Sony's\"]\n[3, 'Belt']\n"
    members = {"answer__csv": ANSWERS, "truth__csv": TRUTH, "data_product": records}
    tables = zheng.product(published(datasets__zip=archive(**members)), folder="some folder")
    assert tables.items["text"].tolist() == ["Turntable [SEP] Sony's", "Belt [SEP] Sony's"]
    assert tables.items[["id_a", "id_b"]].to_numpy().tolist() == [["1", "2"], ["3", "2"]]
    assert tables.extra["records"].loc["3", "name"] == "Belt"


def test_tweets_come_with_a_test(published):
    members = {"answer__csv": ANSWERS, "truth__csv": TRUTH}
    members |= {"quali__csv": "id,worker,answer\n7,B2,1\n", "quali_truth__csv": "q,truth\n7,0\n"}
    tables = zheng.tweets(published(datasets__zip=archive(**members)), folder="some folder")
    assert tables.extra["qualification_annotations"].to_numpy().tolist() == [["7", "B2", "1"]]
    assert tables.extra["qualification_truth"].to_dict() == {"7": "0"}
