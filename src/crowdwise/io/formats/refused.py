"""Exports that are recognized only to be refused by name, since they have no single votes."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from crowdwise.errors import FormatError, explain
from crowdwise.io.document import Document, ReadOptions, RecordTable, Table, Tree
from crowdwise.io.formats import ground_truth, kili
from crowdwise.io.recognize import Format

ROWS = "write rows of task, worker, label and read those"


def refuse(tool: str, reason: str, fix: str) -> Callable[[Document, ReadOptions], NoReturn]:
    """Make a parser that explains what the export is, and why it cannot be read."""

    def parse(document: Document, _: ReadOptions) -> NoReturn:
        raise FormatError(
            explain(
                f"{document.name} is {tool}, which cannot be read as annotations.",
                found=reason,
                expected="the single labels, and who gave each of them",
                fix=fix,
            )
        )

    return parse


def _lacks(*names: str) -> Callable[[Table], bool]:
    """Return a check that a table has none of these columns."""
    return lambda document: not set(names) & set(document.columns)


def _holds_metadata(document: Table) -> bool:
    """Return whether a label such as ``sport`` comes with ``sport-metadata`` but no answers."""
    return not ground_truth.FORMAT.recognizes(document) and any(
        str(key).endswith("-metadata")
        and isinstance(value, Mapping)
        and ("job-name" in value or str(value.get("type")).startswith("groundtruth/"))
        for row in document.sample
        for key, value in row.items()
    )


def _holds_responses(document: RecordTable) -> bool:
    """Return whether assets have Kili's ``jsonResponse`` but no readable answers."""
    return not kili.FORMAT.recognizes(document) and any(
        isinstance(one, Mapping) and "jsonResponse" in one
        for row in document.sample
        for one in [row, row.get("latestLabel"), *_list(row.get("labels"))]
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _has_keys(*names: str) -> Callable[[Tree], bool]:
    return lambda document: set(names) <= set(document.value)


BOXES = "boxes and outlines in images, not labels of whole tasks, and without names"
MARKS = "boxes, outlines or captions of images, not labels of whole tasks, and without names"
COCO = refuse("a COCO file", MARKS, f"if each of them is a task, {ROWS}")

PANDAS = refuse(
    "a frame that pandas wrote with orient='split' or 'table'",
    "separate titles, row names and cells",
    "write it with frame.reset_index().to_json(orient='records')",
)

REFUSED: tuple[Format[Any], ...] = (
    Format("pandas", "pandas", Tree, PANDAS, matches=_has_keys("columns", "index", "data")),
    Format("pandas", "pandas", Tree, PANDAS, matches=_has_keys("schema", "data")),
    Format("pandas", "pandas", RecordTable, PANDAS, marks=({"columns", "index", "data"},)),
    Format("coco", "COCO", Tree, COCO, matches=_has_keys("images", "annotations")),
    Format(
        "coco",
        "COCO",
        RecordTable,
        COCO,
        marks=(
            {"images", "annotations"},
            {"image_id", "caption"},
            {"image_id", "category_id", "bbox"},
            {"image_id", "category_id", "segmentation"},
        ),
        matches=_lacks("worker", "annotator", "worker_id", "annotator_id"),
    ),
    Format(
        "labelme",
        "LabelMe",
        Tree,
        refuse("a LabelMe file", BOXES, f"if each shape is a task, {ROWS}"),
        matches=_has_keys("shapes", "imagePath"),
    ),
    Format(
        "appen_aggregated",
        "Appen, aggregated",
        Table,
        refuse(
            "Appen's aggregated report",
            "one result for each unit, with a confidence, and no worker",
            "download the full report, which has a row for each judgment (_worker_id)",
        ),
        marks=({"_unit_id", "_trusted_judgments"}, {"_unit_id", "*:confidence"}),
        matches=_lacks("_worker_id"),
    ),
    Format(
        "appen_json",
        "Appen, JSON",
        RecordTable,
        refuse(
            "Appen's JSON report",
            "judgments nested in units, and only those of the first units",
            "download the full report as CSV, which has a row for each judgment",
        ),
        marks=({"judgments_count", "results", "data"},),
    ),
    Format(
        "labelbox_v1",
        "Labelbox, version 1",
        Table,
        refuse(
            "an old export of Labelbox (version 1)",
            "one row for each label, whose answers are nested in 'Label'",
            "export the project again as NDJSON (version 2), with label details",
        ),
        marks=({"Labeled Data", "Label"}, {"DataRow ID", "Label"}),
    ),
    Format(
        "ground_truth_manifest",
        "Ground Truth",
        RecordTable,
        refuse(
            "an output manifest of SageMaker Ground Truth",
            "the consolidated label of each object, not the workers' answers",
            "read the job's folder annotations/consolidation-request, or a manifest with"
            " annotationsFromAllWorkers",
        ),
        matches=_holds_metadata,
    ),
    Format(
        "argilla_legacy",
        "Argilla 1",
        Table,
        refuse(
            "a data set of Argilla 1 (text or token classification)",
            "one annotation for each record, which replaces those before it",
            "move it to a FeedbackDataset or to Argilla 2, where every user's response is kept",
        ),
        marks=({"annotation", "annotation_agent"}, {"prediction", "prediction_agent"}),
    ),
    Format(
        "survey",
        "Qualtrics or SurveyMonkey",
        Table,
        refuse(
            "a survey of Qualtrics or SurveyMonkey",
            "one row per person, a column per question, and rows of titles below the first",
            "remove the other columns and titles, turn it so that each question is a row and each"
            f" person a column, and read that; or {ROWS}",
        ),
        marks=({"StartDate", "EndDate", "ResponseId"}, {"Respondent ID", "Collector ID"}),
    ),
    Format(
        "scale",
        "Scale",
        RecordTable,
        refuse(
            "a list of tasks of Scale AI",
            "the response that Scale agreed on for each task, without the people who gave it",
            f"if you have answers by person, {ROWS}",
        ),
        marks=({"task_id", "response", "params"}, {"task_id", "callback_url"}),
    ),
    Format(
        "kili_parts",
        "Kili",
        RecordTable,
        refuse(
            "an export of Kili",
            "marks or texts in jsonResponse, or only the latest label, and no category by each"
            " person",
            "export all labels of the assets (labels, with author.email), of a job of categories",
        ),
        matches=_holds_responses,
    ),
    Format(
        "doccano_spans",
        "doccano, spans",
        RecordTable,
        refuse(
            "doccano's export of spans",
            "marks inside the texts ('entities'), not labels of them",
            f"if each span is a task, {ROWS}",
        ),
        marks=({"text", "entities"},),
    ),
)  # most specific first, as in FORMATS
