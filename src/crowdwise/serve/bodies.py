"""Bodies of requests."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from crowdwise.serve.actions import LONGEST
from crowdwise.typing import Json

MOST_ROWS = 10_000  # in a batch


class Body(BaseModel):
    """A body; unknown fields are refused, so that typos are noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class WorkerBody(Body):
    worker: str | None = Field(None, max_length=LONGEST, description="a lead may name any worker")


class TaskBody(WorkerBody):
    task: str = Field(max_length=LONGEST)


class LabelBody(TaskBody):
    label: str = Field(max_length=LONGEST)


class LabelsBody(Body):
    labels: list[LabelBody] = Field(max_length=MOST_ROWS)


class NewTask(Body):
    task: str = Field(max_length=LONGEST)
    text: str | None = Field(None, max_length=100_000)
    image: str | None = Field(None, max_length=2_000, description="https address or file")
    gold: str | None = Field(None, max_length=LONGEST, description="the truth, if it is known")


class TasksBody(Body):
    tasks: list[NewTask] = Field(max_length=MOST_ROWS)


class TokenBody(Body):
    name: str = Field(max_length=LONGEST)
    role: Literal["worker", "lead", "admin"] = "worker"


class ProjectBody(Body):
    """The settings to change; all others are kept."""

    title: str | None = Field(None, max_length=200)
    instructions: str | None = Field(None, max_length=20_000)
    classes: list[str] | None = Field(None, max_length=1_000)
    target: float | None = None
    min_labels: int | None = None
    max_labels: int | None = None
    cost: float | None = None
    lease: float | None = None
    checks: float | None = None

    def changes(self) -> Json:
        found = self.model_dump(exclude_none=True)
        return found | ({"classes": tuple(found["classes"])} if "classes" in found else {})
