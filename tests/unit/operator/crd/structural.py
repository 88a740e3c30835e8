"""What Kubernetes does with a schema, in small: judges it, fills values in by it, judges values.

    problems(schema)         why it is not structural; empty where it is
    filled(value, schema)    the value with what is left out
    complaints(value, schema)

Rules in CEL are not judged here: a real API server does that in the tests of `make test-k8s`.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

import re2

Schema = dict[str, Any]

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
KEYWORDS = {
    "description",
    "type",
    "format",
    "enum",
    "default",
    "required",
    "properties",
    "items",
    "additionalProperties",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "maxItems",
    "maxProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
}
"""All others mean trouble in a CRD, or something that we have no use for."""


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """A schema and all schemas in it, each with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}" if path else name)
    for word, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if word in schema:
            yield from parts(schema[word], path + mark)


def problems(schema: Schema) -> list[str]:
    return [f"{path}: {said}" for path, part in parts(schema) for said in _problems(part)]


def _problems(part: Schema) -> Iterator[str]:
    if unknown := set(part) - KEYWORDS:
        yield f"has {unknown}"
    if part.get("type") not in KINDS:
        yield "has no type"
    if missing := set(part.get("required", ())) - set(part.get("properties", ())):
        yield f"requires {missing}, which it does not have"
    if "properties" in part and "additionalProperties" in part:
        yield "has properties of both sorts"
    if (part.get("type") == "array") != ("items" in part):
        yield "is half an array"
    for key in part.get("x-kubernetes-list-map-keys", ()):
        if key not in part["items"].get("required", ()):
            yield f"is told apart by {key}, which may be left out"
    if "pattern" in part:
        re2.compile(part["pattern"])  # Raises where Go would: they have the same syntax.
    if "default" in part:
        yield from complaints(filled(part["default"], part), part)


def filled(value: Any, schema: Schema) -> Any:
    """The value with all defaults, as the API server stores it; nulls are as if left out."""
    if isinstance(value, list):
        return [filled(each, schema["items"]) for each in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    found = {name: each for name, each in value.items() if each is not None}
    for name, inner in schema["properties"].items():
        if name not in found and "default" in inner:
            found[name] = copy.deepcopy(inner["default"])
        if name in found:
            found[name] = filled(found[name], inner)
    return found


def complaints(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Why a value does not fit."""
    kind = KINDS[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {schema['type']}"]
    said = [f"{path}: {words}" for words in _bounds_broken(value, schema)]
    if isinstance(value, list):
        for index, each in enumerate(value):
            said += complaints(each, schema["items"], f"{path}[{index}]")
    if isinstance(value, dict) and "x-kubernetes-preserve-unknown-fields" not in schema:
        said += [
            f"{path}: lacks {name}" for name in schema.get("required", ()) if name not in value
        ]
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                said.append(f"{path}: knows no {name}")
            else:
                said += complaints(each, inner, f"{path}.{name}")
    return said


def _bounds_broken(value: Any, schema: Schema) -> Iterator[str]:
    size = len(value) if isinstance(value, str | list | dict) else value
    for least in ("minimum", "minLength"):
        if size < schema.get(least, size):
            yield f"{value!r} is less than {schema[least]}"
    for most in ("maximum", "maxLength", "maxItems", "maxProperties"):
        if size > schema.get(most, size):
            yield f"{value!r} is more than {schema[most]}"
    if value not in schema.get("enum", [value]):
        yield f"{value!r} is none of {schema['enum']}"
    if not re.search(schema.get("pattern", ""), value if isinstance(value, str) else ""):
        yield f"{value!r} does not match"
