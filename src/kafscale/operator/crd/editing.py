"""The schemas of our resources as JSON Schema, for editors that complete and check as one types.

The law: they say what the CRDs say, as far as JSON Schema has words for it. The rules in CEL, which
relate fields to each other, are left to the API server; but a member that nobody knows, which the
API server would drop without a word, is refused here.
"""

from typing import Any, Final

from kafscale.operator.crd.definitions import Resource, schema
from kafscale.operator.crd.schema import Schema

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The one that every editor understands."""


def json_schema(resource: Resource) -> Schema:
    """The schema of a whole resource."""
    translated = _translated(schema(resource))
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


def _translated(part: Schema) -> Schema:
    """A part of a schema, without the words that only Kubernetes has."""
    said: dict[str, Any] = {
        word: value
        for word, value in part.items()
        if not word.startswith("x-kubernetes-") and (word, value) != ("format", "int64")
    }
    if "properties" in part:
        members = part["properties"].items()
        said["properties"] = {name: _translated(member) for name, member in members}
        said["additionalProperties"] = False
    for word in ("items", "additionalProperties"):
        if word in part:
            said[word] = _translated(part[word])
    return said
