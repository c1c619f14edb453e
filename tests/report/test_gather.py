"""All facts of a report, on good data and on poor."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError
from crowdwise.evaluate import agreement
from crowdwise.report import gather, to_html, to_json, write_report
from crowdwise.report.facts.findings import findings, quote


@pytest.fixture(scope="module")
def facts(crowd):
    return gather(crowd[0], truth=crowd[1], title="Clips", method="DawidSkene")


def texts(facts):
    return [finding.text for finding in facts.findings]


def test_agreement_is_that_of_evaluate(facts, crowd):
    table = agreement(crowd[0], random_state=0)
    assert [one.name for one in facts.agreement] == table.index.tolist()
    assert [one.value for one in facts.agreement] == pytest.approx(
        table["value"].tolist(), nan_ok=True
    )


def test_findings_say_what_matters_in_plain_words(facts):
    found = " ".join(texts(facts))
    assert "1 of 6 workers always gives the same label: “lazy”." in found
    assert "1 of 6 workers answers as if at random: “random”." in found
    assert "DawidSkene expects" in found
    assert "“eel” is rare" in found
    shares = replace(facts.classes, inferred=np.array([0.4, 0.4, 0.2]))
    assert not any("is rare" in one.text for one in findings(replace(facts, classes=shares)))
    tones = [finding.tone for finding in facts.findings]
    assert tones == sorted(tones, key=["act", "note", "good"].index)
    sections = {finding.section for finding in facts.findings}
    assert sections <= {
        "agreement",
        "labels",
        "workers",
        "data",
        "classes",
        "methods",
        "curve",
        "pairs",
    }


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.99, "it is underconfident"), (0.9, "are."), (0.7, "it is overconfident")],
)
def test_confidence_that_truths_contradict_is_named(facts, accuracy, said):
    claimed = replace(facts.trust, accuracy=replace(facts.trust.accuracy, value=0.9))
    right = replace(
        facts.main.scores["accuracy"], value=accuracy, low=accuracy - 0.05, high=accuracy + 0.05
    )
    main = replace(facts.main, scores={**facts.main.scores, "accuracy": right})
    methods = [main if one is facts.main else one for one in facts.methods]
    for method, cure in ("BayesBag", "--gold-file"), ("DawidSkene", ""):
        named = [replace(one, name=method) if one is main else one for one in methods]
        made = replace(facts, trust=claimed, methods=named, method=method)
        (text,) = (one.text for one in findings(made) if " expects " in one.text)
        assert said in text
        assert ("--gold-file" in text) == bool(cure and "confident" in said)


def test_each_kind_of_worker_has_its_own_number(facts):
    flags = dict(zip(facts.workers.flags, (3, 2, 1, 5), strict=True))
    workers = replace(facts.workers, flags=flags, n_workers=44)
    found = [finding.text for finding in findings(replace(facts, workers=workers))]
    for words in (
        "3 of 44 workers answer as if at random.",
        "2 of 44 workers always give the same label.",
        "1 of 44 workers often contradicts the rest.",
        "5 of 44 workers have too few labels to assess.",
    ):
        assert words in found
    none = replace(workers, flags=dict.fromkeys(flags, 0))
    found = [finding.text for finding in findings(replace(facts, workers=none))]
    assert "No worker stands out as a problem." in found


def test_confidence_is_doubted_where_agreement_may_be_chance(facts):
    sure = replace(facts, tasks=replace(facts.tasks, n_uncertain=0))
    alpha = next(m for m in facts.agreement if "alpha" in m.name)
    for low, doubted in ((0.2, False), (0.0, True), (float("nan"), True)):
        known = replace(sure, agreement=(replace(alpha, low=low),))
        (finding,) = [one for one in findings(known) if "Every label" in one.text]
        assert ("nothing shows that workers agree" in finding.text) == doubted
        assert finding.tone == ("note" if doubted else "good")
    points = [replace(point, forecast=0.9) for point in facts.curve.points]
    idle = replace(sure, curve=replace(facts.curve, points=tuple(points), now=points[0].n_labels))
    for low, said in ((0.2, True), (-0.1, False)):
        known = replace(idle, agreement=(replace(alpha, low=low),))
        assert any("hardly help" in one.text for one in findings(known)) == said


def test_the_same_seed_gives_the_same_facts(crowd):
    def numbers():
        found = gather(crowd[0], truth=crowd[1], methods=("MACE",))
        known = json.loads(to_json(found))
        for one in known["methods"]:
            one.pop("seconds")
        return known

    assert numbers() == numbers()


def test_json_holds_plain_values_only(facts):
    found = json.loads(to_json(facts))
    assert found["data"]["n_tasks"] == 160
    assert found["tasks"]["label"] == facts.tasks.label.tolist()
    assert found["tasks"]["votes"][0] == [
        [c, n] for c, n in enumerate(facts.tasks.votes[[0]].toarray()[0].astype(int).tolist()) if n
    ]
    assert found["curve"]["points"][-1]["kept"] is None  # NaN is no JSON


def test_truth_that_came_with_the_annotations_is_used(crowd):
    data, truth = crowd
    gold = np.array([data.classes.tolist().index(name) for name in truth])
    gold[::2] = -1
    own = Annotations.from_codes(
        data.task, data.worker, data.label, tasks=data.tasks, classes=data.classes, gold=gold
    )
    found = gather(own, methods=())
    assert found.n_truths == 80
    assert found.main.scores["accuracy"].n_tasks == 80


def test_truth_of_other_tasks_or_classes_is_refused(crowd):
    with pytest.raises(AnnotationError, match="No truth is for a task"):
        gather(crowd[0], truth={"nobody": "cat"})
    with pytest.raises(AnnotationError, match="None of the truths is a class"):
        gather(crowd[0], truth={"clip 1": "bat"})


def test_no_annotations_are_refused():
    with pytest.raises(AnnotationError, match="no annotations"):
        gather(Annotations.from_codes([], [], []))


FEW = ("MajorityVote", "GLAD", "MACE")
POOR = {
    "one annotation": {"a": {"w": 1}},
    "one class": {"a": {"w": 1, "v": 1}, "b": {"w": 1, "v": 1}},
    "one worker": {"a": {"w": 1}, "b": {"w": 0}, "c": {"w": 1}},
    "two workers": {str(k): {"w": k % 2, "v": k % 3 == 0} for k in range(30)},
    "one label per task": {str(k): {f"w{k % 7}": k % 2} for k in range(40)},
    "two parts": {
        str(k): {f"w{2 * (k % 2)}": k % 3, f"w{2 * (k % 2) + 1}": k % 3} for k in range(40)
    },
    "many classes": {
        str(k): {w: f"class {(k * 7 + len(w)) % 45}" for w in ("a", "bb")} for k in range(90)
    },
}


@pytest.mark.parametrize("name", POOR)
def test_poor_data_still_make_a_report(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gather(POOR[name], methods=FEW)
        page = to_html(found)
        json.loads(to_json(found))
    assert page.count("<section") >= 8
    assert not re.search(r"\bnan\b", page.partition("<script")[0].lower())


def test_poor_data_are_reported():
    def sentences(name):
        return " ".join(texts(gather(POOR[name], methods=())))

    assert "No task was labeled by two workers" in sentences("one label per task")
    assert "There is only one class." in sentences("one class")
    apart = sentences("two parts")
    assert "2 parts that share neither tasks nor workers" in apart


def test_repeats_soft_labels_and_weights_do_no_harm():
    rng = np.random.RandomState(0)
    soft = rng.dirichlet([1, 1, 1], size=60)
    data = Annotations.from_codes(
        rng.randint(0, 20, 60), rng.randint(0, 4, 60), soft.argmax(axis=1), soft=soft,
        weight=rng.random_sample(60),
    )  # fmt: skip
    found = gather(data, methods=FEW)
    assert found.data.n_repeats > 0
    assert found.data.soft
    assert any("repeat" in text for text in texts(found))
    assert to_html(found)


def test_writing_a_page_or_its_numbers(crowd, tmp_path):
    data, truth = crowd
    frame = pd.DataFrame(np.random.RandomState(0).random_sample((160, 3)), index=data.tasks)
    options = {"X": frame, "truth": truth, "method": "IBCC", "methods": ("MajorityVote",)}
    found = write_report(data, tmp_path / "report.html", **options)
    assert found.method == "IBCC"
    text = (tmp_path / "report.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    write_report(data, tmp_path / "facts.json", **options)
    assert json.loads((tmp_path / "facts.json").read_text())["method"] == "IBCC"


def test_names_in_sentences_cannot_steer_a_terminal():
    assert quote("yes") == "“yes”"
    assert quote("a\x1b[31mb\u202ec\nd") == "“a\ufffd[31mb\ufffdc\ufffdd”"
    assert len(quote("x" * 500)) == 42
    labels = {str(k): {w: f"\x1b[2J{k % 2}" for w in "abc"} for k in range(12)}
    assert "\x1b" not in " ".join(texts(gather(labels, methods=())))
