"""Notes that count records."""

import copy
import pickle

from crowdwise.annotations.grouping import Aside, count_aside, join_notes


def test_a_note_is_text_that_counts():
    note = Aside("rows left out", 1200)
    assert note == "rows left out: 1,200"
    assert count_aside(["read as long", note, Aside("rows left out", 3)]) == 1203


def test_notes_of_several_files_are_added_up():
    notes = ["a", Aside("rows left out", 2), "a", Aside("rows left out", 2), "b"]
    joined = join_notes(notes)
    assert joined == ("a", "b", "rows left out: 4")
    assert count_aside(joined) == 4


def test_a_note_survives_copies():
    note = Aside("rows left out", 2)
    for again in (copy.copy(note), copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (again, again.n, again.what) == (note, 2, "rows left out")
