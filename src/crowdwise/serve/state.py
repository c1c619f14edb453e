"""The state of a project as plain values, for the routes of leads and the dashboard."""

from __future__ import annotations

import numpy as np
import pandas as pd

from crowdwise.serve.service import Service
from crowdwise.typing import Floats, Json


def summarize(service: Service) -> Json:
    """Summarize the whole project."""
    board, plan = service.board, service.observer.plan
    with board.lock:
        counts, settings = board.counts.view.copy(), board.settings
        n_labels, n_workers = int(counts.sum()), len(board.workers)
        n_held, n_withdrawn, seq = board.leases.held.total(), board.n_withdrawn, board.seq
    done = np.zeros(len(counts), bool)
    done[: len(plan.done)] = plan.done
    promise = plan.promise
    return {
        "title": settings.title,
        "n_tasks": len(counts),
        "n_done": int(done.sum()),
        "n_begun": int((counts > 0).sum()),
        "n_labels": n_labels,
        "n_workers": n_workers,
        "n_in_hand": n_held,
        "n_withdrawn": n_withdrawn,
        "cost": n_labels * settings.cost,
        "target": settings.target,
        "accuracy": None if promise is None else drop_nan(promise.accuracy),
        "low": None if promise is None else drop_nan(promise.low),
        "high": None if promise is None else drop_nan(promise.high),
        "n_events": seq,
        "n_events_learned": service.observer.standing.seq,
    }


def drop_nan(value: float) -> float | None:
    """Return a number, or None for NaN."""
    return None if np.isnan(value) else value


def task_frame(service: Service) -> pd.DataFrame:
    """List every task: its labels so far, the model's label, and whether it is done."""
    board, standing = service.board, service.observer.standing
    with board.lock:
        names, counts = list(board.tasks.list), board.counts.view.copy()
        classes, held = board.settings.classes, dict(board.leases.held)
        gain, done, gold = board.gain, board.done, dict(board.gold)
    n = len(names)
    posterior = np.full((n, max(len(classes), 1)), 1.0 / max(len(classes), 1))
    known = standing.posterior[:n, : posterior.shape[1]]
    posterior[: len(known), : known.shape[1]] = known
    labels = np.array([*classes, None], dtype=object)[posterior.argmax(axis=1)]
    labels[counts == 0] = None
    for number, label in gold.items():
        labels[number] = label
    frame = pd.DataFrame({"task": names, "label": labels})
    frame["confidence"] = np.where(counts > 0, posterior.max(axis=1), np.nan)
    frame["labels"], frame["in_hand"] = counts, [held.get(i, 0) for i in range(n)]
    frame["gain"], frame["done"] = fill(gain, n), fill(done, n).astype(bool)
    return frame


def fill(values: Floats, n: int) -> Floats:
    """Extend values to ``n`` tasks, with 0 for those that have been added since."""
    found = np.zeros(n)
    found[: len(values)] = values[:n]
    return found


def worker_frame(service: Service) -> pd.DataFrame:
    """List every worker: labels, skill by the live model, and cost."""
    board, standing = service.board, service.observer.standing
    with board.lock:
        names, cost = list(board.workers.list), board.settings.cost
        given = np.array([len(board.labeled[name]) for name in names], dtype=np.int64)
    skill = np.full(len(names), np.nan)
    skill[: len(standing.skill)] = standing.skill[: len(names)]
    frame = pd.DataFrame({"worker": names, "labels": given, "skill": skill})
    return frame.assign(cost=given * cost).sort_values("labels", ascending=False, kind="stable")


def show_task(service: Service, number: int) -> Json:
    """Describe one task with all its labels."""
    board, standing = service.board, service.observer.standing
    with board.lock:
        classes = board.settings.classes
        labels = {
            worker: classes[own[number]] for worker, own in board.labeled.items() if number in own
        }
        name, content, gold = (
            board.tasks.list[number],
            board.content[number],
            board.gold.get(number),
        )
    known = standing.posterior[number] if number < len(standing.posterior) else []
    proba = {label: round(float(p), 6) for label, p in zip(classes, known, strict=False)}
    return {"task": name, "content": content, "labels": labels, "gold": gold, "posterior": proba}


def show_model(service: Service) -> Json:
    """Describe the live model: how each worker labels tasks of each class."""
    board, standing = service.board, service.observer.standing
    with board.lock:
        names, classes = list(board.workers.list), list(board.settings.classes)
    confusion = {
        name: [[round(float(p), 4) for p in row] for row in matrix]
        for name, matrix in zip(names, standing.confusion, strict=False)
    }
    return {
        "method": "IBCC",
        "event": standing.seq,
        "classes": classes,
        "confusion": confusion,
        "skill": {
            name: round(float(value), 4) for name, value in zip(names, standing.skill, strict=False)
        },
    }


def to_records(frame: pd.DataFrame) -> list[Json]:
    """Convert rows to plain values, with None for missing ones."""
    columns = {name: frame[name].astype(object).where(frame[name].notna(), None) for name in frame}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
