"""Renders definitions as YAML, and JSON schemas for editors: what `make generate` writes.

Invariant: the JSON schemas say what the CRDs say, as far as JSON Schema can. CEL rules are left to
the API server; but unknown fields, which the API server would silently drop, are rejected.
"""

import json
from typing import Any, Final

import yaml

from generators.crds.definitions import RESOURCES, Resource, definitions, schema
from generators.crds.schema import Schema

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The dialect that every editor supports."""
_HEADER: Final = """\
# Written by `make generate` from the classes in src/kafscale/operator/spec; edit those instead.
---
"""


def json_schema(resource: Resource) -> Schema:
    """The JSON schema of a whole resource."""
    translated = _to_json_schema(schema(resource))
    known = {
        "apiVersion": {"const": resource.kind.api_version},
        "kind": {"const": resource.kind.kind},
        "metadata": {"type": "object"},
    }
    return {
        "$schema": DIALECT,
        "title": resource.kind.kind,
        **translated,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {**translated["properties"], **known},
    }


def _to_json_schema(part: Schema) -> Schema:
    """A part of a schema without the keywords of Kubernetes."""
    translated: dict[str, Any] = {
        keyword: value
        for keyword, value in part.items()
        if not keyword.startswith("x-kubernetes-") and (keyword, value) != ("format", "int64")
    }
    if "properties" in part:
        members = part["properties"].items()
        translated["properties"] = {name: _to_json_schema(member) for name, member in members}
        translated["additionalProperties"] = False
    for keyword in ("items", "additionalProperties"):
        if keyword in part:
            translated[keyword] = _to_json_schema(part[keyword])
    return translated


def render_definitions() -> dict[str, str]:
    """The text of each definition's file, by its name."""
    return {
        f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml": _HEADER
        + yaml.safe_dump(each, sort_keys=False, width=100, allow_unicode=True)
        for each in definitions()
    }


def render_schemas() -> dict[str, str]:
    """The text of each JSON schema's file, by its name."""
    return {
        f"{resource.kind.kind.lower()}.json": json.dumps(
            json_schema(resource), indent=2, ensure_ascii=False
        )
        + "\n"
        for resource in RESOURCES
    }
