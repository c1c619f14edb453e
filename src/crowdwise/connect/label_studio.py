"""Label Studio: annotations out, consensus and overlap in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

import pandas as pd

from crowdwise.connect.link import ConnectError, Link
from crowdwise.connect.pages import write_pages
from crowdwise.errors import FormatError, ParameterError, explain, listing, plural
from crowdwise.io.consensus import as_ratings, to_label_studio
from crowdwise.progress import track
from crowdwise.typing import Json

PAGE = 100  # tasks per request
BATCH = 200  # predictions per request
KEPT = ("id", "data", "total_annotations")
KEPT_OF_EACH = ("id", "result", "completed_by", "was_cancelled", "ground_truth", "created_at",
                "updated_at", "lead_time")  # fmt: skip
KINDS = {"Choices": "choices", "Rating": "rating"}  # controls with one class as the answer
UNCERTAIN = "Uncertainty sampling"
Task = Json


class Pushed(NamedTuple):
    """The result of :meth:`LabelStudio.push`."""

    version: str
    new: int
    known: int  # predictions of this version that existed already


class Control(NamedTuple):
    """A control of the labeling interface: the question to answer."""

    name: str
    to_name: str
    kind: str
    labels: tuple[str, ...] | None  # of choices, if they are the same for all tasks
    most: int | None = None  # stars of a rating


class LabelStudio:
    """A project of a Label Studio server.

    Annotations and drafts, which people have made, are read and never changed.

    Parameters
    ----------
    url : str
        The address of the server.
    token : str
        A personal access token (Account & Settings), or a legacy one.
    project : int
        The number in the project's address.
    question : str, optional
        The name of the control to read and answer, if there are several.
    link : Link, optional
        Sends the requests; made from ``url`` and ``token`` by default.
    """

    def __init__(
        self,
        url: str,
        token: str,
        project: int,
        *,
        question: str | None = None,
        link: Link | None = None,
    ) -> None:
        self.project, self.question = project, question
        self._token, self._access = check_token(token.strip()), ""
        self.link = Link(url, self._headers) if link is None else link

    # -- requests ----------------------------------------------------------------------

    def _headers(self) -> dict[str, str]:
        if self._token.count(".") != 2:
            return {"Authorization": f"Token {self._token}"}
        return {"Authorization": f"Bearer {self._access}"} if self._access else {}

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Any:
        """Send a request and return the response; an expired access token is renewed."""
        if self._token.count(".") == 2 and not self._access:
            self._renew()
        try:
            return self.link.ask(method, path, body, **more)
        except ConnectError as error:
            if error.status != 401 or not self._access:
                raise
        self._renew()
        return self.link.ask(method, path, body, **more)

    def _renew(self) -> None:
        self._access = ""
        answer = self.link.ask("POST", "/api/token/refresh/", {"refresh": self._token}, again=True)
        if not isinstance(answer, dict) or not isinstance(answer.get("access"), str):
            raise unexpected("/api/token/refresh/", "an access token")
        self._access = check_token(answer["access"])

    # -- annotations -------------------------------------------------------------------

    def tasks(
        self, after: int = 0, condition: Mapping[str, object] | None = None
    ) -> Iterator[Task]:
        """Yield every task with its annotations and predictions, ordered by id.

        Each page starts after the last id rather than at an offset, so tasks that are added or
        deleted meanwhile cause none to be skipped or repeated.
        """
        while True:
            page = self._page(after, condition)
            for task in page:
                after = check_task(task, after)["id"]
                yield task
            if len(page) < PAGE:
                return

    def _page(self, after: int, condition: Mapping[str, object] | None) -> list[Task]:
        beyond = {"filter": "filter:tasks:id", "operator": "greater", "type": "Number"}
        items = [{**beyond, "value": after}, *([condition] if condition else [])]
        query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
        words = f"project={self.project}&page_size={PAGE}&fields=all"
        path = f"/api/tasks?{words}&query={quote(json.dumps(query))}"
        answer = self.ask("GET", path)
        if not isinstance(answer, dict) or not isinstance(answer.get("tasks"), list):
            raise unexpected("/api/tasks", "an object with a list of tasks")
        return list(answer["tasks"])

    def task(self, number: int) -> Task | None:
        """Return a task of the project; None if it has no such task."""
        try:
            task = check_task(self.ask("GET", f"/api/tasks/{number:d}/"))
        except ConnectError as error:
            if error.status != 404:
                raise
            return None
        own = task["id"] == number and task.get("project", self.project) == self.project
        return task if own else None

    def pull(self, path: str | Path) -> int:
        """Write every task with its annotations to a JSON lines file, which ``read`` reads.

        An interrupted pull resumes where it stopped. Returns the number of tasks.
        """
        total = self.show_project().get("task_number")
        return write_pages(
            Path(path),
            f"{self.link.url} {self.project}",
            lambda after: track(map(keep, self.tasks(after)), "pulling tasks", total),
        )

    # -- consensus ---------------------------------------------------------------------

    def show_project(self) -> Json:
        """Return the project as the server describes it."""
        answer = self.ask("GET", f"/api/projects/{self.project}/")
        if not isinstance(answer, dict):
            raise unexpected(
                f"/api/projects/{self.project}/", "an object that describes the project"
            )
        return answer

    def find_control(self) -> Control:
        """Find the control that asks for a class."""
        project = self.show_project()
        controls = check_controls(project.get("parsed_label_config") or {})
        fitting = {name: one for name, one in controls.items() if one["type"] in KINDS}
        names = [self.question] if self.question is not None else list(fitting)
        if len(names) != 1 or names[0] not in fitting:
            raise ParameterError(
                explain(
                    f"Project {self.project} has {len(fitting)} questions answered by a class.",
                    found=listing(list(fitting), 20) or "none",
                    expected="the name of one of them",
                    fix="name it with question= (--question)",
                )
            )
        one, kind = fitting[names[0]], KINDS[fitting[names[0]]["type"]]
        labels = None if one.get("dynamic_labels") else tuple(one["labels"])
        most = read_most(project.get("label_config"), names[0]) if kind == "rating" else None
        return Control(names[0], one["to_name"][0], kind, labels, most)

    def push(self, consensus: pd.DataFrame, version: str | None = None) -> Pushed:
        """Add consensus labels as predictions.

        Parameters
        ----------
        consensus : DataFrame
            Columns task (the number of a task), label and confidence, which becomes the score.
        version : str, optional
            The model version. By default it is derived from the labels, so the same labels get
            the same version. Predictions that the project already has are not sent again.
        """
        rows, control = check_consensus(consensus), self.find_control()
        rows = rows.assign(label=check_labels(rows["label"], control))
        version = name_version(rows) if version is None else version
        made = to_label_studio(
            rows, control.name, control.to_name, type=control.kind, model_version=version
        )
        wanted = {int(one["data"]["task"]): one["predictions"][0] for one in made}
        first = known = self.list_predicted(version)
        for last in (False, True):
            missing = [(task, one) for task, one in wanted.items() if task not in known]
            try:
                self._import([{"task": task, **one} for task, one in missing])
                break
            except ConnectError as error:
                if last or error.status:
                    raise
            known = self.list_predicted(version)  # what the project has is not sent again
        return Pushed(version, len(wanted.keys() - first), len(wanted.keys() & first))

    def _import(self, predictions: list[Json]) -> None:
        batches = [predictions[i : i + BATCH] for i in range(0, len(predictions), BATCH)]
        for batch in track(batches, "pushing predictions"):
            self.ask("POST", f"/api/projects/{self.project}/import/predictions", batch)

    def list_predicted(self, version: str) -> set[int]:
        """Return the ids of the tasks that have a prediction of this version."""
        name = "filter:tasks:predictions_model_versions"
        having = {"filter": name, "operator": "contains", "type": "String", "value": version}
        return {
            int(task["id"])
            for task in self.tasks(condition=having)
            if any(one.get("model_version") == version for one in task["predictions"])
        }

    # -- the queue ---------------------------------------------------------------------

    def order(self, version: str) -> None:
        """Offer tasks in the order of their scores in this version, lowest first.

        In the open edition this holds for a single annotator; with several, Label Studio samples
        among the tasks that have a prediction of this version. Predictions are then hidden from
        annotators, who would tend to agree with them.
        """
        change = {"sampling": UNCERTAIN, "model_version": version, "show_collab_predictions": False}
        self.ask("PATCH", f"/api/projects/{self.project}/", change)

    def set_overlap(self, tasks: Iterable[Task], wanted: Mapping[int, bool]) -> int:
        """Open tasks for one more annotation, or close them; returns the number changed.

        ``wanted`` says whether the task of each id is open. Tasks without annotations are not
        changed.
        """
        changed = 0
        for task in tasks:
            number, given = int(task["id"]), int(task["total_annotations"])
            if number not in wanted or not given:
                continue
            is_open = wanted[number]
            state = {"overlap": given + is_open, "is_labeled": not is_open}
            if any(task.get(name) != value for name, value in state.items()):
                self.ask("PATCH", f"/api/tasks/{number}/", state)
                changed += 1
        return changed


def unexpected(place: str, expected: str) -> ConnectError:
    """Return the error for a response that Label Studio would not send."""
    return ConnectError(
        explain(
            "The server's response is not what Label Studio sends.",
            first=place,
            expected=expected,
            fix="check the address, and that the server runs a current Label Studio",
        ),
        200,
    )


def check_token(token: str) -> str:
    """Return the token, unless it cannot be sent."""
    if not (token.isascii() and token.isprintable()):
        raise ParameterError(
            explain(
                "The token has characters that cannot be sent.",
                expected="letters, digits and signs on one line",
                fix="copy it again from Account & Settings",
            )
        )
    return token


def check_task(task: Any, after: int | None = None) -> Task:
    """Return the task, unless its numbers or lists are invalid; in a page, ids rise."""
    numbers = [task.get(name) for name in ("id", "total_annotations")] if is_object(task) else []
    if not numbers or not all(type(number) is int for number in numbers):
        raise unexpected("a task", "an object with whole numbers as id and total_annotations")
    if after is not None and task["id"] <= after:
        raise unexpected(f"task {task['id']} after task {after}", "tasks in the order of their ids")
    for name in ("annotations", "predictions"):
        given = [] if task.get(name) is None else task[name]
        if not isinstance(given, list) or not all(map(is_object, given)):
            raise unexpected(f"{name} of task {task['id']}", "a list of objects")
    return dict(task)


def check_controls(controls: Any) -> Json:
    """Return the controls of a labeling interface, unless they are invalid."""
    found: Json = {**controls} if is_object(controls) else {"": {}}
    for one in found.values():
        parts = [one.get("to_name"), one.get("labels")] if is_object(one) else [None]
        if not all(isinstance(part, list) for part in parts) or not parts[0] or "type" not in one:
            raise unexpected("parsed_label_config", "controls with type, to_name and labels")
    return found


def is_object(value: object) -> bool:
    return isinstance(value, dict)


def check_consensus(consensus: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a label: task numbers, each once, and confidences from 0 to 1."""
    missing = [name for name in ("task", "label", "confidence") if name not in consensus]
    if missing:
        raise FormatError(
            explain(
                f"The labels have no column {', '.join(missing)}.",
                found=listing(list(consensus.columns), 10) or "no columns",
                expected="task, label and confidence",
                fix="write them with crowdwise aggregate -o",
            )
        )
    rows = consensus[consensus["label"].notna()]
    task, sure = (pd.to_numeric(rows[name], errors="coerce") for name in ("task", "confidence"))
    whole = (task > 0) & (task < 2**53) & (task == task.round())
    checks = (
        (~whole, "task", "the numbers of tasks in Label Studio"),
        (task.duplicated(), "task", "every task once"),
        (~sure.between(0, 1), "confidence", "numbers from 0 to 1"),
    )
    for bad, name, expected in checks:
        if bad.any():
            raise FormatError(
                explain(
                    f"{plural(int(bad.sum()), 'row')} of the labels cannot be pushed.",
                    first=f"{name} {listing(rows.loc[bad, name].tolist(), 1)}",
                    expected=expected,
                    fix="pull the annotations of this project, and push their consensus",
                )
            )
    return rows.assign(task=task.astype("int64"), confidence=sure.astype("float64"))


def keep(task: Task) -> Task:
    """Keep what an annotation file needs of a task; people are numbers, as in an export."""
    kept = {name: task[name] for name in KEPT if name in task}
    annotations = []
    for given in task.get("annotations") or []:
        one = {name: given[name] for name in KEPT_OF_EACH if name in given}
        who = one.get("completed_by")
        annotations.append(one | {"completed_by": who.get("id") if isinstance(who, dict) else who})
    return kept | {"annotations": annotations}


def read_most(config: object, name: str) -> int | None:
    """Return how many stars a rating has, by the XML of the labeling interface."""
    try:
        tags = ElementTree.fromstring(str(config)).iter("Rating")
        found = [tag.get("maxRating", "5") for tag in tags if tag.get("name") == name]
        return int(found[0]) if found else None
    except (ElementTree.ParseError, ValueError):
        return None


def check_labels(labels: pd.Series, control: Control) -> pd.Series:
    """Return labels as the control has them; others are refused."""
    if control.kind == "rating":
        return as_ratings(labels, control.most)
    labels = labels.map(str)
    other = [] if control.labels is None else sorted(set(labels) - set(control.labels))
    if other:
        raise FormatError(
            explain(
                f"The question {control.name!r} does not have all of these labels.",
                found=listing(other, 20),
                expected=f"some of {listing(list(control.labels or ()), 20)}",
                fix="pull the annotations of this project and push the consensus of those",
            )
        )
    return labels


def name_version(rows: pd.DataFrame) -> str:
    """Derive a version name from labels and confidences."""
    columns = (rows[name].tolist() for name in ("task", "label", "confidence"))
    lines = sorted(
        f"{task}\0{label}\0{sure:.4f}" for task, label, sure in zip(*columns, strict=True)
    )
    return f"crowdwise-{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}"
