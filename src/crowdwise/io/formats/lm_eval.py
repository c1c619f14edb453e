"""lm-evaluation-harness: JSONL of logged samples, one folder or file per model."""

import math
from pathlib import PurePath

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable
from crowdwise.io.formats.collect import Collector, choose_question, get_field
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

SAMPLES = "samples_"  # how the files begin that the harness writes


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return one row for each sample; the model is named by the folder, or by the file."""
    rows = Collector(document.name)
    folder = PurePath(document.name).parent.name
    model = folder if document.stem.startswith(SAMPLES) and folder else document.stem
    filters = list(dict.fromkeys(str(record.get("filter")) for record in document.records()))
    several = len(filters) > 1  # each sample is logged once for each of them
    chosen = choose_question(options.asked, filters, document.name, "filter") if several else ""
    for record in document.records():
        if several and str(record.get("filter")) != chosen:
            rows.count_left_out("answers of other filters")
            continue
        task = get_field(record, options.task or "doc_id")
        worker = get_field(record, options.worker) if options.worker else model
        answer = find_answer(record, None if several else options.asked)
        rows.add(task, worker, answer)
        truth = record.get("target") if options.gold is None else None
        if isinstance(answer, int) and isinstance(truth, str) and truth.isdecimal():
            truth = int(truth)  # the harness writes the number of a choice as text
        rows.add_truth(task, truth)
    return rows.to_long("worker from the folder or the file name")


def find_answer(record: Record, asked: str | None) -> Cell:
    """Return the filtered answer; of choices with log-likelihoods, the likeliest's number."""
    answer = get_field(record, asked or "filtered_resps")
    while isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if isinstance(answer, list) and answer and all(isinstance(one, list) and one for one in answer):
        likely = [float(one[0]) for one in answer]
        known = not any(map(math.isnan, likely))
        return max(range(len(likely)), key=likely.__getitem__) if known else None
    if isinstance(answer, list):  # a likelihood and whether it is greedy: no answer
        return None
    return None if answer in ("[invalid]", "") else answer


FORMAT = Format(
    "lm_eval", __doc__, RecordTable, parse, marks=({"doc_id", "filtered_resps", "target"},)
)
