"""Logs of tools that run language models as judges, as they write them, and their traps."""

import json
import sys
import zipfile

import pytest

import crowdwise
from crowdwise.errors import CrowdwiseError, MissingExtraError

NAN = float("nan")


def labels(votes):
    return {(row.task, row.worker): row.label for row in votes.to_frame().itertuples()}


def declined(votes):
    if votes.declined is None:
        return []
    return [(votes.tasks[i], votes.workers[j]) for i, j in votes.declined]


# -- Inspect ----------------------------------------------------------------------------


def sample(number, scores, epoch=1, answer="yes"):
    given = {name: {"value": value, "answer": answer} for name, value in scores.items()}
    return {
        "id": number, "epoch": epoch, "input": "q", "target": "yes", "messages": [],
        "output": {"model": "gpt", "choices": []}, "scores": given,
    }  # fmt: skip


def log(*samples, model="openai/gpt"):
    head = {"version": 2, "status": "success", "eval": {"task": "t", "model": model}, "stats": {}}
    return {**head, "results": {"scores": []}, "samples": list(samples)}


def test_scorers_of_an_inspect_log_are_judges():
    votes = crowdwise.read(log(sample("a", {"x": 1, "y": 0}), sample("b", {"x": 0, "y": NAN})))
    assert votes.notes[0] == "read as inspect_ai"
    assert labels(votes) == {("a", "x"): 1, ("a", "y"): 0, ("b", "x"): 0}
    assert declined(votes) == [("b", "y")]  # asked, and gave none


def test_epochs_are_other_outputs_and_so_other_tasks():
    votes = crowdwise.read(log(sample(1, {"x": "C"}), sample(1, {"x": "I"}, epoch=2)))
    assert labels(votes) == {("1 #1", "x"): "C", ("1 #2", "x"): "I"}


def test_models_that_answer_may_be_the_judges():
    """Epochs are then several answers of one judge."""
    logs = log(sample(1, {"m": "C"}), sample(1, {"m": "I"}, epoch=2, answer="no"))
    votes = crowdwise.read(logs, worker="model", gold="target")
    assert votes.workers.tolist() == ["openai/gpt"]
    assert sorted(votes.to_frame()["label"]) == ["no", "yes"]
    assert votes.gold_labels.to_dict() == {1: "yes"}


def test_outputs_of_several_models_are_different_tasks(tmp_path):
    for model in ("a", "b"):
        path = tmp_path / f"{model}.json"
        path.write_text(json.dumps(log(sample(1, {"x": 1, "y": 0}), model=model)))
    votes = crowdwise.read(tmp_path)
    assert votes.tasks.tolist() == ["a 1", "b 1"]
    assert votes.n_repeats == 0


def test_a_scorer_of_several_values(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps(log(sample(1, {"x": {"style": 3, "facts": 1}}), {"id": 2, "epoch": 1}))
    )
    votes = crowdwise.read(path)
    assert labels(votes) == {(1, "x/style"): 3, (1, "x/facts"): 1}
    assert "samples without a score left out: 1" in votes.notes
    assert labels(crowdwise.read(path, question="facts")) == {(1, "x"): 1}


ZSTANDARD = 93  # what Inspect packs with; the standard library has it from Python 3.14 on


def zip_with(method):
    """The module zipfile that knows this method of packing."""
    known = method != ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD")
    return zipfile if known else pytest.importorskip("backports.zstd.zipfile")


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, ZSTANDARD], ids=["deflate", "zstd"])
def test_a_packed_inspect_log(tmp_path, packing):
    path = tmp_path / "log.eval"
    whole = log(sample(1, {"x": 1}), sample(2, {"x": 0}))
    samples = whole.pop("samples")
    with zip_with(packing).ZipFile(path, "w", packing) as archive:
        archive.writestr("header.json", json.dumps(whole))
        archive.writestr("_journal/start.json", json.dumps({"version": 2}))
        archive.writestr("summaries.json", json.dumps([{"id": 1, "scores": {"x": {"value": 9}}}]))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    votes = crowdwise.read(path)
    assert labels(votes) == {(1, "x"): 1, (2, "x"): 0}
    assert labels(crowdwise.read(tmp_path)) == labels(votes)
    path.write_bytes(path.read_bytes()[:60] + b"junk" + path.read_bytes()[64:])
    with pytest.raises(CrowdwiseError, match=r"log.eval cannot be unpacked"):
        crowdwise.read(path)


@pytest.mark.skipif(hasattr(zipfile, "ZIP_ZSTANDARD"), reason="this Python unpacks it by itself")
def test_a_log_that_needs_an_extra_names_it(tmp_path, monkeypatch):
    with zip_with(ZSTANDARD).ZipFile(tmp_path / "log.eval", "w", ZSTANDARD) as archive:
        archive.writestr("header.json", "{}")
    monkeypatch.setitem(sys.modules, "backports.zstd.zipfile", None)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[zstd\]"):
        crowdwise.read(tmp_path / "log.eval")


# -- promptfoo --------------------------------------------------------------------------


def result(number, grades, provider="p", prompt=0):
    parts = [
        {"pass": score is None or score > 0.5, "score": score, "assertion": dict(about)}
        for about, score in grades
    ]
    return {
        "testIdx": number, "promptIdx": prompt, "provider": {"id": provider, "label": ""},
        "vars": {}, "success": True, "score": 1,
        "gradingResult": {"pass": True, "score": 1, "componentResults": parts},
    }  # fmt: skip


A = (("type", "llm-rubric"), ("value", "polite"), ("provider", "gpt"))
B = (("type", "llm-rubric"), ("value", "polite"), ("provider", "llama"))
WORD = (("type", "contains"), ("value", "x"))


def test_promptfoo_reads_grades_of_models():
    rows = [result(0, [(A, 0.8), (B, 0.2), (WORD, 1)]), result(1, [(A, None)]), {"testIdx": 2}]
    whole = {"evalId": "e", "results": {"version": 3, "results": rows, "stats": {}}, "config": {}}
    votes = crowdwise.read(whole)
    assert votes.notes[0] == "read as promptfoo"
    assert labels(votes) == {(0, "gpt"): 0.8, (0, "llama"): 0.2, (1, "gpt"): 1}
    assert "grades of no model left out: 1" in votes.notes
    assert "outputs without a grade left out: 1" in votes.notes


def test_outputs_of_several_providers_and_prompts_are_different_tasks(tmp_path):
    rows = [result(0, [(A, 1)], provider=p, prompt=k) for p in ("x", "y") for k in (0, 1)]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    votes = crowdwise.read(path)
    assert votes.n_tasks == 4
    assert votes.n_repeats == 0


# -- DeepEval ---------------------------------------------------------------------------


def case(number, *metrics):
    parts = [
        {"name": name, "score": score, "evaluationModel": model, "error": error}
        for name, score, model, error in metrics
    ]
    return {"name": f"case_{number}", "input": "q", "actualOutput": "a", "metricsData": parts}


def test_deepeval_reads_models_that_judged_one_metric():
    both = [case(k, ("Tone", 0.5 + k / 4, "gpt", None), ("Tone", 1, "llama", None)) for k in (0, 1)]
    both.append(case(2, ("Tone", None, "gpt", "not JSON"), ("Tone", 0, "llama", None)))
    votes = crowdwise.read({"testCases": both, "testPassed": 3, "hyperparameters": None})
    assert votes.notes[0] == "read as deepeval"
    assert labels(votes)[("case_1", "gpt")] == 0.75
    assert declined(votes) == [("case_2", "gpt")]


def test_deepeval_with_several_metrics():
    many = [("Tone", 1, "gpt", None), ("Facts", 0, "llama", None)]
    cases = {"testCases": [case(0, *many)], "testPassed": 1}
    with pytest.raises(CrowdwiseError, match="2 metrics"):
        crowdwise.read(cases)
    assert labels(crowdwise.read(cases, question="Facts")) == {("case_0", "llama"): 0}
    alone = {"testCases": [case(0, *[(n, s, "gpt", None) for n, s, *_ in many])], "testPassed": 1}
    assert set(labels(crowdwise.read(alone))) == {("case_0", "Tone"), ("case_0", "Facts")}


# -- OpenAI evals -----------------------------------------------------------------------


def event(number, kind, data):
    head = {"run_id": "r", "event_id": number, "created_by": "", "created_at": "2024-01-01"}
    return {**head, "sample_id": f"s.{number}", "type": kind, "data": data}


def test_events_of_openai_evals(tmp_path):
    path = tmp_path / "run.jsonl"
    rows = [
        {"spec": {"completion_fns": ["gpt"], "eval_name": "e"}},
        event(0, "sampling", {"prompt": "q", "sampled": ["Yes"]}),
        event(1, "metrics", {"choice": "Yes", "score": 1.0}),
        event(2, "metrics", {"choice": "__invalid__", "score": None}),
        event(3, "metrics", {"choice": "No", "score": 0.0}),
        {"final_report": {"score": 0.5}},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    votes = crowdwise.read(path)
    assert votes.notes[0] == "read as openai_evals"
    assert labels(votes) == {("s.1", "gpt"): "Yes", ("s.3", "gpt"): "No"}
    assert declined(votes) == [("s.2", "gpt")]
    assert "events without a grade left out: 1" in votes.notes
    assert set(labels(crowdwise.read(path, label="score")).values()) == {0, 1}


def test_output_items_of_the_api():
    results = [{"name": "g1", "score": 0.9, "passed": True}, {"name": "g2", "passed": False}]
    item = {
        "object": "eval.run.output_item",
        "id": "o",
        "datasource_item_id": 5,
        "results": results,
    }
    votes = crowdwise.read({"object": "list", "data": [item], "has_more": False})
    assert labels(votes) == {(5, "g1"): 0.9, (5, "g2"): 0}


# -- lm-evaluation-harness --------------------------------------------------------------


def test_samples_of_the_harness_are_named_by_their_folders(tmp_path):
    for model, answers in (("gpt", ["A", "B"]), ("llama", ["B", "[invalid]"])):
        folder = tmp_path / model
        folder.mkdir()
        rows = [
            {"doc_id": k, "doc": {}, "target": "A", "filtered_resps": [answer], "acc": 1.0}
            for k, answer in enumerate(answers)
        ]
        path = folder / "samples_task_2024.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
    votes = crowdwise.read(sorted(tmp_path.glob("*/samples_*.jsonl")))
    assert votes.notes[0] == "read as lm_eval, 2 files"
    assert labels(votes) == {(0, "gpt"): "A", (1, "gpt"): "B", (0, "llama"): "B"}
    assert declined(votes) == [(1, "llama")]
    assert votes.gold_labels.tolist() == ["A", "A"]


def test_choices_by_likelihood(tmp_path):
    path = tmp_path / "phi.jsonl"
    row = {"doc_id": 0, "target": 1, "filtered_resps": [[-3.0, False], [-1.0, False]]}
    path.write_text(json.dumps(row))
    assert labels(crowdwise.read(path)) == {(0, "phi"): 1}


# -- plain records ----------------------------------------------------------------------


def test_plain_records_of_judges(tmp_path):
    path = tmp_path / "judgments.jsonl"
    rows = [
        {"id": 1, "judge": "gpt", "verdict": "good", "family": "OpenAI", "sample": 0},
        {"id": 1, "judge": "gpt", "verdict": "bad", "family": "OpenAI", "sample": 1},
        {"id": 1, "judge": "llama", "verdict": None, "family": "Meta", "sample": 0},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    votes = crowdwise.read(path)
    assert votes.n_workers == 2
    assert votes.n_repeats == 1  # samples are nested in their judge
    assert declined(votes) == [(1, "llama")]
    assert votes.about_workers["family"].to_dict() == {"gpt": "OpenAI", "llama": "Meta"}
    rows[1]["family"] = "other"  # then it says nothing of the judge
    path.write_text("\n".join(map(json.dumps, rows)))
    assert crowdwise.read(path).about_workers is None


def test_a_column_of_scores_beside_the_labels(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text("id,judge,label,score\n1,a,good,0.9\n1,b,bad,0.25\n2,a,,\n2,b,good,1\n")
    assert crowdwise.read(path).score is None
    votes = crowdwise.read(path, score="score")
    assert votes.score.tolist() == [0.9, 0.25, 1.0]
    assert votes.classes.tolist() == ["bad", "good"]
    assert declined(votes) == [(2, "a")]
    path.write_text("id,judge,label,score\n1,a,good,high\n")
    with pytest.raises(CrowdwiseError, match="1 score that cannot be used"):
        crowdwise.read(path, score="score")
