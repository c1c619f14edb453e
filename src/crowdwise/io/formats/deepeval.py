"""DeepEval: JSON of a test run; judges are the models that evaluated a metric."""

from crowdwise.io.build import LongTable
from crowdwise.io.document import JSON, Document, ReadOptions, Record
from crowdwise.io.formats.collect import Collector, choose_question, get_first, list_rows
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

METRICS = ("metricsData", "metrics_data", "metricsMetadata")
JUDGE = ("evaluationModel", "evaluation_model")


def matches(document: Document) -> bool:
    """Return whether test cases have a list of metrics."""
    return any(list_metrics(row) for row in list_cases(document)[:20])


def parse(document: Document, options: ReadOptions) -> LongTable:
    """Return one row for each test case and model, for one metric per model."""
    rows, cases = Collector(document.name), list_cases(document)
    names = [str(part.get("name")) for case in cases for part in list_metrics(case)]
    judges = {get_first(part, JUDGE) for case in cases for part in list_metrics(case)}
    metric = None
    if options.asked is not None or (len(judges) > 1 and len(set(names)) > 1):
        metric = choose_question(options.asked, names, document.name, "metric")
    for place, case in enumerate(cases):
        keys = (options.task,) if options.task else ("name", "input")
        task = get_first(case, keys)
        for part in list_metrics(case):
            if metric is not None and part.get("name") != metric:
                rows.count_left_out("values of other metrics")
                continue
            failed = part.get("error") is not None
            worker = find_judge(part, alone=metric is None and len(judges) < 2)
            rows.add(place if task is None else task, worker, None if failed else part.get("score"))
    return rows.to_long("label from the score of a metric")


def list_cases(document: Document) -> list[Record]:
    return list_rows(document, "testCases", "test_cases", "testResults", "test_results")


def list_metrics(case: Record) -> list[Record]:
    found = get_first(case, METRICS)
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def find_judge(part: Record, *, alone: bool) -> Cell:
    """Return the model; if all metrics have the same one, or none, the metric."""
    return part.get("name") if alone else get_first(part, JUDGE)


FORMAT = Format("deepeval", __doc__, JSON, parse, matches=matches)
