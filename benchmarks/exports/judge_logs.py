"""Logs of tools that run language models as judges."""

from typing import Any

from exports.pen import Export, Pen, Writer
from exports.records import by_task


def inspect_ai(pen: Pen) -> Export:
    samples = []
    for task, votes in by_task(pen, twice=False):
        scores = {}
        for _, worker, label in votes:
            scores[str(worker)] = pen.spoil(pen.record(value=label, answer="x", explanation=""))
            pen.write(task, str(worker), label)
        samples.append(
            {"id": task, "epoch": 1, "input": "x", "target": "", "output": {}, "scores": scores}
        )
    if pen.chance(0.2):
        samples.append({"id": "none", "epoch": 1, "scores": pen.pick([{}, None])})
        pen.write("none", None, None, aside=True)
    head = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    return pen.export("inspect_ai", "log.json", pen.dump({**head, "samples": samples}))


def promptfoo(pen: Pen) -> Export:
    rows = []
    for task, votes in by_task(pen, twice=False):
        parts = []
        for _, worker, label in votes:
            graded = pen.chance(0.9)
            kind = "llm-rubric" if graded else "contains"
            about = {"type": kind, "value": "polite", "provider": f"p:{worker}"}
            parts.append(pen.record(score=label, **{"pass": True}) | {"assertion": about})
            pen.write(task, f"p:{worker}", label, aside=not graded)
        own: dict[str, Any] = {"pass": True, "score": 1, "componentResults": parts}
        rows.append(
            {"testIdx": task, "promptIdx": 0, "provider": {"id": "p"}, "gradingResult": own}
        )
    if pen.chance(0.5):
        return pen.export("promptfoo", "results.jsonl", pen.dump_lines(rows))
    whole = {"evalId": "e", "results": {"version": 3, "results": rows}, "config": {}}
    return pen.export("promptfoo", "results.json", pen.dump(whole))


def deepeval(pen: Pen) -> Export:
    cases = []
    for task, votes in by_task(pen, twice=False):
        metrics = []
        for _, worker, label in votes:
            failed = pen.chance(0.1)
            own = pen.record(score=label, threshold=0.5, success=True)
            error = "not JSON" if failed else None
            metrics.append({**own, "name": "Tone", "evaluationModel": f"m{worker}", "error": error})
            pen.write(task, f"m{worker}", label, aside=failed)
        cases.append({"name": task, "input": "x", "actualOutput": "y", "metricsData": metrics})
    pen.options = {"question": "Tone"}
    return pen.export("deepeval", "run.json", pen.dump({"testCases": cases, "testPassed": 1}))


def openai_evals(pen: Pen) -> Export:
    rows: list[Any] = [{"spec": {"completion_fns": ["gpt"]}}]
    for number, (task, _, label) in enumerate(pen.draw_votes()):
        kind = pen.pick(["metrics", "metrics", "sampling"])
        head = {"run_id": "r", "event_id": number, "sample_id": f"s.{task}", "type": kind}
        rows.append({**head, "data": pen.spoil(pen.record(choice=str(label), extra=1))})
        pen.write(f"s.{task}", "gpt", str(label), aside=kind == "sampling")
    return pen.export("openai_evals", "run.jsonl", pen.dump_lines(rows))


def lm_eval(pen: Pen) -> Export:
    rows = []
    for task, _, label in pen.draw_votes(twice=False):
        rows.append(
            {"doc": {}, "doc_id": task, "target": None, "filtered_resps": [pen.spoil(label)]}
        )
        pen.write(task, "phi", label)
    return pen.export("lm_eval", "phi.jsonl", pen.dump_lines(rows))


JUDGE_LOGS: dict[str, Writer] = {
    "deepeval": deepeval,
    "inspect_ai": inspect_ai,
    "lm_eval": lm_eval,
    "openai_evals": openai_evals,
    "promptfoo": promptfoo,
}
