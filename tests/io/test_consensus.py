"""Labels for the tools they came from."""

import json
import re

import pandas as pd
import pytest

import crowdwise as cw
from crowdwise.aggregate import MajorityVote
from crowdwise.errors import FormatError
from crowdwise.io import consensus_frame, to_argilla, to_label_studio


@pytest.fixture
def consensus():
    return pd.DataFrame(
        {"task": [11, 12, 13], "label": ["cat", "dog", None], "confidence": [0.75, 1.0, 0.5]}
    )


def test_label_studio_gets_its_tasks_back_with_predictions(exports):
    export = json.loads((exports / "label_studio.json").read_text())
    annotations = cw.read(export, "label_studio", question="animal")
    consensus = consensus_frame(MajorityVote().fit(annotations), annotations)
    tasks = to_label_studio(consensus, "animal", "image", export)
    assert tasks[1] == {
        "id": 12,
        "data": {"image": "/data/dog-1.jpg"},
        "predictions": [
            {
                "model_version": "crowdwise",
                "score": 1.0,
                "result": [
                    {
                        "from_name": "animal",
                        "to_name": "image",
                        "type": "choices",
                        "value": {"choices": ["cat"]},
                    }
                ],
            }
        ],
    }
    json.dumps(tasks)


def test_without_an_export_the_task_is_its_name(consensus):
    tasks = to_label_studio(consensus, "animal", "image", model_version="ds")
    assert [task["data"] for task in tasks] == [{"task": 11}, {"task": 12}]
    assert tasks[0]["predictions"][0]["model_version"] == "ds"
    assert tasks[0]["predictions"][0]["score"] == 0.75


def test_tasks_that_the_export_lacks_are_passed_over(consensus):
    tasks = to_label_studio(consensus, "animal", "image", [{"id": "12", "data": {}}])
    assert [task["id"] for task in tasks] == ["12"]


@pytest.mark.parametrize("label", [4, 4.0, "4", "4.0"])
def test_ratings_are_whole_numbers(label):
    consensus = pd.DataFrame({"task": ["a", "b"], "label": [label, None], "confidence": [0.9, 0.5]})
    (task,) = to_label_studio(consensus, "stars", "text", type="rating")
    assert json.dumps(task["predictions"][0]["result"][0]["value"]) == '{"rating": 4}'


@pytest.mark.parametrize("label", [3.5, -1, "good", "inf", 1e300])
def test_other_labels_are_no_ratings(label):
    consensus = pd.DataFrame({"task": ["a", "b"], "label": [4, label], "confidence": [0.9, 0.5]})
    with pytest.raises(
        FormatError, match=f"1 label cannot be a rating(.|\n)*{re.escape(str(label))}"
    ):
        to_label_studio(consensus, "stars", "text", type="rating")


def test_argilla_gets_suggestions(consensus):
    assert to_argilla(consensus, "animal") == [
        {
            "id": name,
            "animal.suggestion": label,
            "animal.suggestion.score": score,
            "animal.suggestion.agent": "crowdwise",
        }
        for name, label, score in [("11", "cat", 0.75), ("12", "dog", 1.0)]
    ]
