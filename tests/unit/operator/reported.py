"""What the operator reports: conditions with their reasons, and events, read from its source.

    conditions("cluster")   {("EtcdReady", "True", "HasQuorum"), ...}
    events("topic")         {"Created", ...}

Reasons must be literals, constants, or a choice between such; anything else is an error here, so
that the documentation can list all of them. The code is read, not run.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from services import syntax_tree

SOURCE = Path(__file__).parents[3] / "src"
OPERATOR = SOURCE / "kafscale" / "operator"
STATUSES = {"ok": {"True"}, "bad": {"False"}, "unknown": {"Unknown"}, "make": {"False", "Unknown"}}
"""Functions that build a condition from a type and a reason; `make` is either of two of them."""
SHORTHANDS = {"rejected": "Ready", "_unready": "EtcdReady"}
"""Functions that build a False condition of this type, with the reason as second argument."""
PHASES = {"ok": {"Ready", "Sleeping"}, "bad": {"Pending", "Progressing", "Degraded"}}
"""The reasons of `Ready` are a cluster's phases, which are in the variable `word`."""
RECORDERS = {"record_event": 1, "_report": 2, "Event": 0}
"""Functions that record an event, and the position of the reason."""

Condition = tuple[str, str, str]


class Function(NamedTuple):
    """A function and its module."""

    path: Path
    module: ast.Module
    body: ast.FunctionDef | ast.AsyncFunctionDef


def conditions(kind: str) -> set[Condition]:
    """Types, statuses and reasons of all conditions of a `cluster` or a `topic`."""
    return {
        result
        for function in _functions(kind)
        for call in _calls(function.body)
        for result in _conditions(call, function)
    }


def events(kind: str) -> set[str]:
    """The reasons of all events of a `cluster` or a `topic`, except those of conditions."""
    return {
        argument.value
        for function in _functions(kind)
        for call in _calls(function.body)
        if (position := RECORDERS.get(_name(call))) is not None and len(call.args) > position
        if isinstance(argument := call.args[position], ast.Constant)
    }


def _functions(kind: str) -> Iterator[Function]:
    for path in sorted(OPERATOR.rglob("*.py")):
        is_of_topics = path.parent.name == "topics"
        if is_of_topics == (kind == "topic") and path != OPERATOR / "spec" / "status.py":
            module = syntax_tree.parse(path)
            for node in ast.walk(module):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield Function(path, module, node)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _conditions(call: ast.Call, within: Function) -> Iterator[Condition]:
    name = _name(call)
    if name in SHORTHANDS and len(call.args) > 1:
        for reason in _texts(call.args[1], within):
            yield SHORTHANDS[name], "False", reason
    is_plain = isinstance(call.func, ast.Name) and name in STATUSES
    if not is_plain or within.body.name in SHORTHANDS:
        return
    is_phase = ast.unparse(call.args[1]) == "word"
    reasons = PHASES[name] if is_phase else _texts(call.args[1], within)
    for type_ in _texts(call.args[0], within):
        for reason in reasons:
            for status in STATUSES[name]:
                yield type_, status, reason


def _texts(value: ast.expr, within: Function) -> set[str]:
    """The possible values of an expression."""
    match value:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, within) | _texts(other, within)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return _constant(name, *_imported(module, within.module))
        case ast.Name(id=name):
            assigned = [
                each.value
                for each in ast.walk(within.body)
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name
            ]
            if assigned:
                return set().union(*(_texts(each, within) for each in assigned))
            return _constant(name, within.path, within.module)
    raise AssertionError(f"{within.path.name}, line {value.lineno}: the reason is not a literal")


def _constant(name: str, path: Path, module: ast.Module) -> set[str]:
    """A constant of a module, defined or imported there."""
    for node in module.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            assert isinstance(node.value, ast.Constant), f"{name} in {path.name}"
            return {node.value.value}
        if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}:
            return _constant(name, *_read(node.module or ""))
    raise AssertionError(f"{path.name} has no constant {name}")


def _imported(name: str, module: ast.Module) -> tuple[Path, ast.Module]:
    """A module that another one imports by this name."""
    [package] = {
        node.module
        for node in module.body
        if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}
    }
    return _read(f"{package}.{name}")


def _read(module: str) -> tuple[Path, ast.Module]:
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    return path, syntax_tree.parse(path)
