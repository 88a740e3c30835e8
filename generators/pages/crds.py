"""docs/crds.md: every field of the custom resources, from their schemas."""

import json
import textwrap
from collections.abc import Iterator
from typing import Final

from generators.crds.definitions import RESOURCES, Resource, schema
from generators.crds.schema import Schema

_INTRODUCTION: Final = """\
<!-- Written by `make docs` from the classes in src/kafscale/operator/spec; edit those instead. -->

# Custom resources

The fields of a `KafscaleCluster` and a `KafscaleTopic`, and what the operator reports in their
statuses. `kubectl explain kfs.spec` and `kubectl explain kt.spec` show the same. The API server
fills in defaults, rejects invalid values and drops unknown fields. `config/samples` has examples.
"""
_FIELDS: Final = "| field | type | default | meaning |\n|---|---|---|---|\n"
_STATUS_FIELDS: Final = "| field | type | meaning |\n|---|---|---|\n"


def page() -> str:
    """The text of the page."""
    return "\n".join([_INTRODUCTION, *(_resource(each) for each in RESOURCES)])


def _resource(resource: Resource) -> str:
    whole = schema(resource)
    parts = [
        f"## {resource.kind.kind}\n",
        f"{whole['description']}\n",
        f"`{resource.kind.api_version}`, for short `{resource.short_name}`.\n",
        *(_table(path, part, _FIELDS) for path, part in _objects("spec", whole)),
        "### Rules\n\n" + "".join(_wrapped(f"* {rule}", "  ") for rule in _rules(resource)),
        *(_table(path, part, _STATUS_FIELDS) for path, part in _objects("status", whole)),
    ]
    return "\n".join(parts)


def _objects(name: str, holder: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """An object that a schema describes, and all nested objects, each with its path."""
    part = holder["properties"][name]
    path = prefix + name
    if part["type"] == "array":
        part, path = part["items"], f"{path}[]"
    if "properties" in part:
        yield path, part
        for inner in part["properties"]:
            yield from _objects(inner, part, f"{path}.")


def _table(path: str, part: Schema, head: str) -> str:
    rows = []
    for name, field in part["properties"].items():
        cells = [f"`{name}`", _type(field)]
        if head is _FIELDS:
            is_required = name in part.get("required", ())
            cells = [*cells, "required" if is_required else _default(field)]
            cells[1] += _range(field)
        rows.append(f"| {' | '.join([*cells, field['description']])} |\n")
    return f"### `{path}`\n\n{_wrapped(part['description'])}\n{head}{''.join(rows)}"


def _wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph at the width of the other pages."""
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False) + "\n"


def _type(field: Schema) -> str:
    match field:
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"items": items}:
            return f"list of {_type(items)}s"
        case {"additionalProperties": values}:
            return f"map of {_type(values)}s"
        case {"format": "date-time"}:
            return "time"
    return str(field["type"])


def _range(field: Schema) -> str:
    match field:
        case {"minimum": least, "maximum": most}:
            return f", {least} to {most}"
        case {"minimum": least}:
            return f", {least} or more"
    return ""


def _default(field: Schema) -> str:
    if "properties" in field:
        return "see below"
    default = field.get("default")
    if default is None:
        return "unset"
    if default in ("", [], {}):
        return "empty"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _rules(resource: Resource) -> Iterator[str]:
    """The validation rules: the field and the message of the API server."""
    for path, rules in resource.rules.items():
        for rule in rules:
            field_path = f"{path}{rule.field}" or "metadata.name"
            yield f"`{field_path}`: {rule.message}."
