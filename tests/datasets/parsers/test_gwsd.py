"""A person keeps one number over several batches."""

from crowdwise.datasets.parsers import gwsd


def test_batches_of_one_person_are_joined(published):
    responses = (
        "\tworker_unique_ids\tratings\tguid\n0\tr1w0\t0\ts1\n1\tr1w1\t2\ts1\n2\tr2w5\t1\ts2\n"
    )
    people = "\tover34\tmturk_id\tunique_id\n0\t1\tANN\tr1w0\n1\t0\tBOB\tr1w1\n2\t0\tANN\tr2w5\n"
    sentences = (
        "\tsentence\tdisagree\tagree\tneutral\tguid\tin_held_out_test\n"
        "0\tscreening\t\t\t\ts0\tFalse\n"
        "1\tIt is a hoax\t0.7\t0.1\t0.2\ts1\tTrue\n"
        "2\tIt rains\t0.1\t0.2\t0.7\ts2\tFalse\n"
    )
    files = {"all_responses_updated__tsv": responses, "worker_attributes__tsv": people}
    tables = gwsd.parse(published(**files, GWSD__tsv=sentences))
    assert tables.annotations.to_numpy().tolist() == [
        ["s1", "ANN", "disagrees"],
        ["s1", "BOB", "agrees"],
        ["s2", "ANN", "neutral"],
    ]
    assert tables.workers["over34"].to_dict() == {"ANN": "1", "BOB": "0"}
    assert tables.split.to_dict() == {"s1": "test", "s2": "train"}
    assert tables.items["text"].to_dict() == {"s1": "It is a hoax", "s2": "It rains"}
    assert tables.extra["consensus_model"].loc["s1"].to_dict() == {
        "disagree": 0.7,
        "neutral": 0.2,
        "agree": 0.1,
    }
