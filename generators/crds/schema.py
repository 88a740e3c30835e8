"""Generates the OpenAPI schema of a CRD from the classes of a spec or status.

Invariants: the schema is structural (every value has one type, nothing is defined twice). The API
server fills in every optional field of a spec, so that what is read back is what is in effect.
Objects are defaulted field by field, so that setting one field keeps the defaults of the others.

Relations between fields are left to `validation_rules`, the rest of the CRD to `definitions`.
"""

from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from kafscale.operator.kube.api import Manifest

Schema = Manifest

_KEYWORDS: Final = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "ge": "minimum",
    "le": "maximum",
}
"""msgspec's names of bounds, and OpenAPI's."""


def spec_schema(struct: type[msgspec.Struct]) -> Schema:
    """The schema of a spec, with defaults."""
    return _value(inspect.type_info(struct), NODEFAULT, with_defaults=True)


def status_schema(struct: type[msgspec.Struct]) -> Schema:
    """The schema of a status. It has no defaults: missing values are unknown."""
    return _value(inspect.type_info(struct), NODEFAULT, with_defaults=False)


def _value(kind: inspect.Type, default: Any, *, with_defaults: bool) -> Schema:
    """The schema of a value with this default; `None` stays unset."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            extra_schema = extra or {}
            return (
                extra_schema | _value(inner, default, with_defaults=with_defaults) | extra_schema
            )  # The description comes first.
        case inspect.UnionType(types=types):
            [inner] = [each for each in types if not isinstance(each, inspect.NoneType)]
            return _value(inner, default, with_defaults=with_defaults)
        case inspect.StructType():
            return _struct(kind, default, with_defaults=with_defaults)
    schema = _plain(kind, with_defaults=with_defaults)
    if with_defaults and default is not NODEFAULT and default is not None:
        schema["default"] = msgspec.to_builtins(default)
    return schema


def _struct(kind: inspect.StructType, default: Any, *, with_defaults: bool) -> Schema:
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
            field.encode_name: _value(field.type, defaults[field.name], with_defaults=with_defaults)
            for field in kind.fields
        },
    }
    required = [each.encode_name for each in kind.fields if defaults[each.name] is NODEFAULT]
    if required:
        schema["required"] = required
    if with_defaults and default not in (NODEFAULT, None):
        schema["default"] = {}
    return schema


def _default(field: inspect.Field) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _plain(kind: inspect.Type, *, with_defaults: bool) -> Schema:
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
            return _list(kind, with_defaults=with_defaults)
        case inspect.DictType():
            return _dict(kind, with_defaults=with_defaults)
    raise AssertionError(f"unsupported type in a spec: {kind}")


def _list(kind: inspect.ListType, *, with_defaults: bool) -> Schema:
    schema: Schema = {
        "type": "array",
        "items": _value(kind.item_type, NODEFAULT, with_defaults=with_defaults),
    }
    if isinstance(kind.item_type, inspect.StrType):
        # In lists of strings, neither order nor repetition matters.
        schema["x-kubernetes-list-type"] = "set"
    if kind.max_length is not None:
        schema["maxItems"] = kind.max_length
    return schema


def _dict(kind: inspect.DictType, *, with_defaults: bool) -> Schema:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    values = _value(kind.value_type, NODEFAULT, with_defaults=with_defaults)
    schema: Schema = {"type": "object", "additionalProperties": values}
    if kind.max_length is not None:
        schema["maxProperties"] = kind.max_length
    return schema


def _bounds(kind: inspect.Type) -> Schema:
    bounds = {keyword: getattr(kind, name, None) for name, keyword in _KEYWORDS.items()}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}
