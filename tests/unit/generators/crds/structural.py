"""A small model of what Kubernetes does with a schema: check it, apply defaults, validate values.

    problems(schema)                  why it is not structural; empty if it is
    with_defaults(value, schema)      the value with defaults
    violations_of(value, schema)      why a value does not match

CEL rules are not evaluated here: a real API server does that in the tests of `make test-k8s`.
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
"""Other keywords are invalid in a CRD, or not used by Kafscale."""


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """A schema and all nested schemas, each with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}" if path else name)
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in schema:
            yield from parts(schema[keyword], path + mark)


def problems(schema: Schema) -> list[str]:
    return [f"{path}: {result}" for path, part in parts(schema) for result in _problems(part)]


def _problems(part: Schema) -> Iterator[str]:
    if unknown := set(part) - KEYWORDS:
        yield f"has {unknown}"
    if part.get("type") not in KINDS:
        yield "has no type"
    if missing := set(part.get("required", ())) - set(part.get("properties", ())):
        yield f"requires {missing}, which it does not have"
    if "properties" in part and "additionalProperties" in part:
        yield "has both properties and additionalProperties"
    if (part.get("type") == "array") != ("items" in part):
        yield "has a type or items of an array, but not both"
    for key in part.get("x-kubernetes-list-map-keys", ()):
        if key not in part["items"].get("required", ()):
            yield f"is merged by {key}, which is optional"
    if "pattern" in part:
        re2.compile(part["pattern"])  # Go has the same syntax.
    if "default" in part:
        yield from violations_of(with_defaults(part["default"], part), part)


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with all defaults, as the API server stores it; nulls count as missing."""
    if isinstance(value, list):
        return [with_defaults(each, schema["items"]) for each in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    result = {name: each for name, each in value.items() if each is not None}
    for name, inner in schema["properties"].items():
        if name not in result and "default" in inner:
            result[name] = copy.deepcopy(inner["default"])
        if name in result:
            result[name] = with_defaults(result[name], inner)
    return result


def violations_of(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Why a value does not match."""
    kind = KINDS[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {schema['type']}"]
    result = [f"{path}: {problem}" for problem in _bounds_broken(value, schema)]
    if isinstance(value, list):
        for index, each in enumerate(value):
            result += violations_of(each, schema["items"], f"{path}[{index}]")
    if isinstance(value, dict) and "x-kubernetes-preserve-unknown-fields" not in schema:
        result += [
            f"{path}: lacks {name}" for name in schema.get("required", ()) if name not in value
        ]
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                result.append(f"{path}: knows no {name}")
            else:
                result += violations_of(each, inner, f"{path}.{name}")
    return result


def _bounds_broken(value: Any, schema: Schema) -> Iterator[str]:
    size = len(value) if isinstance(value, str | list | dict) else value
    for minimum in ("minimum", "minLength"):
        if size < schema.get(minimum, size):
            yield f"{value!r} is less than {schema[minimum]}"
    for maximum in ("maximum", "maxLength", "maxItems", "maxProperties"):
        if size > schema.get(maximum, size):
            yield f"{value!r} is more than {schema[maximum]}"
    if value not in schema.get("enum", [value]):
        yield f"{value!r} is none of {schema['enum']}"
    if not re.search(schema.get("pattern", ""), value if isinstance(value, str) else ""):
        yield f"{value!r} does not match"
