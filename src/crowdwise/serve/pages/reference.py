"""The API reference, for a page that needs no scripts from other sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crowdwise.typing import Json

if TYPE_CHECKING:
    from fastapi import FastAPI


def list_routes(app: FastAPI) -> dict[str, list[Json]]:
    """List routes by role, with their parameters."""
    spec = app.openapi()
    groups: dict[str, list[Json]] = {"work": [], "lead": [], "admin": []}
    for path, methods in spec["paths"].items():
        for method, about in methods.items():
            groups[about["tags"][0]].append(
                {
                    "method": method.upper(),
                    "path": path,
                    "text": about.get("description", ""),
                    "fields": [*list_parameters(about), *list_fields(spec, about)],
                }
            )
    return groups


def list_parameters(about: Json) -> list[tuple[str, str, str]]:
    """List name, place and description of each parameter."""
    hidden = ("authorization",)
    return [
        (one["name"], one["in"], one.get("description", ""))
        for one in about.get("parameters", [])
        if one["name"] not in hidden
    ]


def list_fields(spec: Json, about: Json) -> list[tuple[str, str, str]]:
    """List name, kind and description of each field of the body."""
    body = about.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return []
    name = body["schema"]["$ref"].rpartition("/")[2]
    schema = spec["components"]["schemas"][name]
    needed = schema.get("required", [])
    return [
        (field, "body" if field in needed else "body, optional", own.get("description", ""))
        for field, own in schema["properties"].items()
    ]
