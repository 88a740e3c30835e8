"""web/src/api/contract.ts: the TypeScript types of the console's API.

Fields of responses are always present. Fields of requests are optional if they have a default.
"""

import ast
import inspect
import pkgutil
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from types import ModuleType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from kafscale.console import schema

_HEADING: Final = "// Generated from src/kafscale/console/schema by `make generate`. Do not edit."
_SCALARS: Final[Mapping[Any, str]] = types.MappingProxyType(
    {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
)


def render() -> str:
    """The whole file."""
    modules = [
        import_module(f"{schema.__name__}.{info.name}")
        for info in sorted(pkgutil.iter_modules(schema.__path__), key=lambda info: info.name)
    ]
    aliases = {
        kind: name
        for module in modules
        for name, kind in vars(module).items()
        if get_origin(kind) is Literal or (_is_model(kind) and kind.__struct_fields__)
    }
    declarations = [block for module in modules for block in _declarations(module, aliases)]
    return "\n\n".join((_HEADING, *declarations)) + "\n"


def _declarations(module: ModuleType, aliases: Mapping[Any, str]) -> Iterator[str]:
    """The types that a module declares, in order."""
    body = ast.parse(inspect.getsource(module)).body
    declared = {ast.unparse(each.targets[0]) for each in body if isinstance(each, ast.Assign)}
    comments = _attribute_docstrings(body)
    for name, kind in vars(module).items():
        if name in declared and get_origin(kind) is Literal:
            yield f"{_comment(comments.get(name))}export type {name} = {_union(kind, {})};"
        elif (
            _is_model(kind)
            and aliases.get(kind) == name
            and (name in declared or kind.__module__ == module.__name__)
        ):
            yield _interface(kind, aliases)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _interface(model: type[msgspec.Struct], aliases: Mapping[Any, str]) -> str:
    comments: dict[str, str] = {}
    for parent in reversed(model.__mro__[: model.__mro__.index(msgspec.Struct)]):
        tree = ast.parse(inspect.getsource(parent)).body[0]
        assert isinstance(tree, ast.ClassDef)
        comments |= _attribute_docstrings(tree.body)
    documentation = inspect.cleandoc(model.__doc__ or "")
    lines = [f"{_comment(documentation)}export interface {aliases[model]} {{"]
    is_request = model.__struct_config__.forbid_unknown_fields
    for field in msgspec.structs.fields(model):
        optional = "?" if is_request and not field.required else ""
        lines.append(
            f"{_comment(comments.get(field.name), '  ')}"
            f"  {field.encode_name}{optional}: {typescript_type(field.type, aliases)};"
        )
    return "\n".join((*lines, "}"))


def typescript_type(kind: Any, aliases: Mapping[Any, str]) -> str:
    """The TypeScript type of a Python type."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind in aliases:
        return aliases[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {UnionType, Union, Literal}:
        return _union(kind, aliases)
    if origin is list or (origin is tuple and parts[1:] == (...,)):
        item = typescript_type(parts[0], aliases)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict and parts[0] in {str, int}:
        return f"Record<string, {typescript_type(parts[1], aliases)}>"
    raise TypeError(f"unsupported type in the schema: {kind}")


def _union(kind: Any, aliases: Mapping[Any, str]) -> str:
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    return " | ".join(dict.fromkeys(typescript_type(part, aliases) for part in parts))


def _attribute_docstrings(body: list[ast.stmt]) -> dict[str, str]:
    """The docstring below each name."""
    comments: dict[str, str] = {}
    for statement, docstring in pairwise(body):
        name = (
            statement.targets[0]
            if isinstance(statement, ast.Assign)
            else getattr(statement, "target", None)
        )
        if isinstance(name, ast.Name) and isinstance(docstring, ast.Expr):
            comments[name.id] = inspect.cleandoc(ast.literal_eval(docstring.value))
    return comments


def _comment(text: str | None, indent: str = "") -> str:
    return f"{indent}/** {' '.join(text.split()).replace('None ', 'null ')} */\n" if text else ""
