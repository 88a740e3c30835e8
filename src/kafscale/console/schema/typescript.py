"""TypeScript types of the API: `python -m kafscale.console.schema.typescript`.

The law: nobody writes these types by hand. What the API gives has all of its fields; what it takes
may leave out those that have a default.
"""

import ast
import inspect
import pkgutil
import sys
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from types import ModuleType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from kafscale.console import schema
from kafscale.console.schema.base import Asked

_HEADING: Final = (
    "// Written from src/kafscale/console/contract by `make generate`; changes belong there."
)
_SCALARS: Final[Mapping[Any, str]] = types.MappingProxyType(
    {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
)


def rendered() -> str:
    """The whole file."""
    modules = [
        import_module(f"{schema.__name__}.{found.name}")
        for found in sorted(pkgutil.iter_modules(schema.__path__), key=lambda one: one.name)
    ]
    aliases = {
        kind: name
        for module in modules
        for name, kind in vars(module).items()
        if get_origin(kind) is Literal
    }
    blocks = [block for module in modules for block in _blocks(module, aliases)]
    return "\n\n".join((_HEADING, *blocks)) + "\n"


def _blocks(module: ModuleType, aliases: Mapping[Any, str]) -> Iterator[str]:
    """The types that a module declares, in its order."""
    body = ast.parse(inspect.getsource(module)).body
    declared = {ast.unparse(each.targets[0]) for each in body if isinstance(each, ast.Assign)}
    told = _strings_below_names(body)
    for name, kind in vars(module).items():
        if name in declared and get_origin(kind) is Literal:
            yield f"{_comment(told.get(name))}export type {name} = {_union(kind, {})};"
        elif _is_shape(kind) and kind.__module__ == module.__name__ and kind.__struct_fields__:
            yield _interface(kind, aliases)


def _is_shape(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _interface(shape: type[msgspec.Struct], aliases: Mapping[Any, str]) -> str:
    tree = ast.parse(inspect.getsource(shape)).body[0]
    assert isinstance(tree, ast.ClassDef)
    told = _strings_below_names(tree.body)
    lines = [
        f"{_comment(inspect.cleandoc(shape.__doc__ or ''))}export interface {shape.__name__} {{"
    ]
    for field in msgspec.structs.fields(shape):
        optional = "?" if issubclass(shape, Asked) and not field.required else ""
        lines.append(
            f"{_comment(told.get(field.name), '  ')}"
            f"  {field.encode_name}{optional}: {typed(field.type, aliases)};"
        )
    return "\n".join((*lines, "}"))


def typed(kind: Any, aliases: Mapping[Any, str]) -> str:
    """A type of ours in the words of TypeScript."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind in aliases:
        return aliases[kind]
    if _is_shape(kind):
        return str(kind.__name__)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {UnionType, Union, Literal}:
        return _union(kind, aliases)
    if origin is list:
        item = typed(parts[0], aliases)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict and parts[0] is str:
        return f"Record<string, {typed(parts[1], aliases)}>"
    raise TypeError(f"the contract has a type that pages have no word for: {kind}")


def _union(kind: Any, aliases: Mapping[Any, str]) -> str:
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    return " | ".join(dict.fromkeys(typed(part, aliases) for part in parts))


def _strings_below_names(body: list[ast.stmt]) -> dict[str, str]:
    """What is said of each name, in a string right below it."""
    told: dict[str, str] = {}
    for above, below in pairwise(body):
        name = above.targets[0] if isinstance(above, ast.Assign) else getattr(above, "target", None)
        if isinstance(name, ast.Name) and isinstance(below, ast.Expr):
            told[name.id] = inspect.cleandoc(ast.literal_eval(below.value))
    return told


def _comment(told: str | None, indent: str = "") -> str:
    return f"{indent}/** {' '.join(told.split())} */\n" if told else ""


if __name__ == "__main__":
    sys.stdout.write(rendered())
