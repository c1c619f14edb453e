"""Songs: labels with old line ends, features and truth of both parts."""

from crowdwise.datasets.parsers import mgc


def test_songs_of_both_parts(published):
    answers = "WorkerID,Input.song,Input.true_label,Answer.pred_label\r"
    answers += "A,b.mp3,jazz,pop\rB,b.mp3,jazz,jazz\r"
    files = published(
        mturk_answers__csv=answers,
        music_genre_gold__csv="id,feature0,feature1,class\nb.mp3,0.5,1,jazz\na.mp3,2,3,pop\n",
        music_genre_test__csv="id,feature0,feature1,class\nc.mp3,4,5,rock\n",
    )
    tables = mgc.parse(files)
    assert tables.annotations.to_numpy().tolist() == [["b.mp3", "A", "pop"], ["b.mp3", "B", "jazz"]]
    assert tables.X_tasks.tolist() == ["b.mp3", "a.mp3", "c.mp3"]
    assert tables.X.tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert tables.truth.tolist() == ["jazz", "pop", "rock"]
    assert tables.split.tolist() == ["train", "train", "test"]
