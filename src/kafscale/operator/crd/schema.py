"""From the classes of a spec or a status to the schema that Kubernetes checks and fills it by.

The laws: the schema is structural (every value has one type, nothing is said twice); whatever may
be left out of a spec is filled in by the API server, so that what is read back is what is in
effect; and an object is filled in member by member, so that who writes one member of it keeps the
defaults of the others.

What relates fields to each other is left to the rules, and the shell of the CRD to definitions.
"""

from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from kafscale.operator.kube.api import Manifest

Schema = Manifest

_WORDS: Final = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "ge": "minimum",
    "le": "maximum",
}
"""What msgspec calls the bounds of texts and numbers, and what OpenAPI calls them."""


def spec_schema(struct: type[msgspec.Struct]) -> Schema:
    """What may be wanted, and what is filled in where nothing is said."""
    return _value(inspect.type_info(struct), NODEFAULT, fills=True)


def status_schema(struct: type[msgspec.Struct]) -> Schema:
    """What may be found. Nothing is filled in: what is left out is not known."""
    return _value(inspect.type_info(struct), NODEFAULT, fills=False)


def _value(kind: inspect.Type, default: Any, *, fills: bool) -> Schema:
    """The schema of a value; `default` is what it is if nothing is said, `None` stays unset."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            said = extra or {}
            return said | _value(inner, default, fills=fills) | said  # What it is for goes first.
        case inspect.UnionType(types=types):
            [inner] = [each for each in types if not isinstance(each, inspect.NoneType)]
            return _value(inner, default, fills=fills)
        case inspect.StructType():
            return _struct(kind, default, fills=fills)
    schema = _plain(kind, fills=fills)
    if fills and default is not NODEFAULT and default is not None:
        schema["default"] = msgspec.to_builtins(default)
    return schema


def _struct(kind: inspect.StructType, default: Any, *, fills: bool) -> Schema:
    defaults = {
        field.name: _default(field)
        if default in (NODEFAULT, None)
        else getattr(default, field.name)
        for field in kind.fields
    }
    schema: Schema = {
        "description": " ".join((kind.cls.__doc__ or "").split()),
        "type": "object",
        "properties": {
            field.encode_name: _value(field.type, defaults[field.name], fills=fills)
            for field in kind.fields
        },
    }
    required = [each.encode_name for each in kind.fields if defaults[each.name] is NODEFAULT]
    if required:
        schema["required"] = required
    if fills and default not in (NODEFAULT, None):
        schema["default"] = {}
    return schema


def _default(field: inspect.Field) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _plain(kind: inspect.Type, *, fills: bool) -> Schema:
    match kind:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64", **_bounds(kind)}
        case inspect.StrType():
            return {"type": "string", **_bounds(kind)}
        case inspect.LiteralType(values=values):
            is_text = isinstance(values[0], str)
            return {"type": "string" if is_text else "integer", "enum": list(values)}
        case inspect.ListType():
            return _list(kind, fills=fills)
        case inspect.DictType():
            return _dict(kind, fills=fills)
    raise AssertionError(f"no spec may hold a {kind}")


def _list(kind: inspect.ListType, *, fills: bool) -> Schema:
    schema: Schema = {"type": "array", "items": _value(kind.item_type, NODEFAULT, fills=fills)}
    if isinstance(kind.item_type, inspect.StrType):
        # In our lists of texts neither order nor repetition means anything.
        schema["x-kubernetes-list-type"] = "set"
    if kind.max_length is not None:
        schema["maxItems"] = kind.max_length
    return schema


def _dict(kind: inspect.DictType, *, fills: bool) -> Schema:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    values = _value(kind.value_type, NODEFAULT, fills=fills)
    schema: Schema = {"type": "object", "additionalProperties": values}
    if kind.max_length is not None:
        schema["maxProperties"] = kind.max_length
    return schema


def _bounds(kind: inspect.Type) -> Schema:
    found = {word: getattr(kind, name, None) for name, word in _WORDS.items()}
    return {word: bound for word, bound in found.items() if bound is not None}
