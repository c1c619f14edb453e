"""The API reference, for a page that needs no scripts from other sites."""

from __future__ import annotations

from typing import Any


def list_routes(app: Any) -> dict[str, list[dict[str, Any]]]:
    """List routes by role, with their parameters."""
    spec, groups = app.openapi(), {"work": [], "lead": [], "admin": []}  # type: Any, dict[str, Any]
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


def list_parameters(about: dict[str, Any]) -> list[tuple[str, str, str]]:
    """List name, place and description of each parameter."""
    hidden = ("authorization",)
    return [
        (one["name"], one["in"], one.get("description", ""))
        for one in about.get("parameters", [])
        if one["name"] not in hidden
    ]


def list_fields(spec: dict[str, Any], about: dict[str, Any]) -> list[tuple[str, str, str]]:
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
