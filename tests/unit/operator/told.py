"""What the operator tells the world, as its code has it: conditions with their reasons, and events.

    conditions("cluster")   {("EtcdReady", "True", "HasQuorum"), ...}
    events("topic")         {"Created", ...}

What is told is written out where it is told, or is a constant, or a choice between such. Whoever
tells something else is an error here, so that nothing is told which the documents cannot know.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).parents[3] / "src"
OPERATOR = SOURCE / "kafscale" / "operator"
STATUSES = {"ok": {"True"}, "bad": {"False"}, "unknown": {"Unknown"}, "make": {"False", "Unknown"}}
"""Functions that make a condition of a type and a reason; `make` stands for one of two of them."""
SHORTHANDS = {"refused": "Ready", "_unready": "EtcdReady"}
"""Functions that make a bad condition of this type, with the reason as their second argument."""
PHASES = {"PENDING", "PROGRESSING", "READY", "DEGRADED", "SLEEPING"}
"""Constants that are the reasons of `Ready` of a cluster, all but the good ones with a status of
their own; the code has the phase in a variable."""
TELLERS = {"tell": 1, "_tell": 2, "Event": 0}
"""Functions that leave an event, and which argument the reason is."""

Condition = tuple[str, str, str]


def conditions(kind: str) -> set[Condition]:
    """Types, statuses and reasons of all conditions of a `cluster` or a `topic`."""
    return {
        found
        for module, tree in _modules(kind)
        for function in _functions(tree)
        for call in _calls(function)
        for found in _conditions(call, function, module)
    }


def events(kind: str) -> set[str]:
    """The reasons of all events of a `cluster` or a `topic`, but for those of conditions."""
    return {
        argument.value
        for _, tree in _modules(kind)
        for call in _calls(tree)
        if (place := TELLERS.get(_name(call))) is not None and len(call.args) > place
        if isinstance(argument := call.args[place], ast.Constant)
    }


def _modules(kind: str) -> Iterator[tuple[ModuleType, ast.Module]]:
    for path in sorted(OPERATOR.rglob("*.py")):
        is_of_topics = path.parent.name == "topics"
        if is_of_topics == (kind == "topic") and path.name not in {"__main__.py", "conditions.py"}:
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            yield importlib.import_module(name), ast.parse(path.read_text())


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _conditions(
    call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType
) -> Iterator[Condition]:
    name = _name(call)
    if name in SHORTHANDS and len(call.args) > 1:
        for reason in _texts(call.args[1], function, module):
            yield SHORTHANDS[name], "False", reason
    if name not in STATUSES or function.name in SHORTHANDS:
        return
    types = _texts(call.args[0], function, module)
    for type_ in types:
        for reason in _texts(call.args[1], function, module):
            for status in STATUSES[name]:
                yield type_, status, reason


def _texts(
    value: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType
) -> set[str]:
    """What an expression may come to."""
    match value:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, function, module) | _texts(other, function, module)
        case ast.Attribute(value=ast.Name(id=of), attr=name):
            return {getattr(getattr(module, of), name)}
        case ast.Name(id=name) if isinstance(getattr(module, name, None), str):
            return {getattr(module, name)}
        case ast.Name(id=name):
            given = [
                each.value
                for each in ast.walk(function)
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name
            ]
            if given:
                return set().union(*(_texts(each, function, module) for each in given))
            if name == "word":  # The phase of a cluster.
                is_good = isinstance(function, ast.FunctionDef) and _in_good_branch(value, function)
                return {"Ready", "Sleeping"} if is_good else {"Pending", "Progressing", "Degraded"}
    raise AssertionError(f"{module.__name__}, line {value.lineno}: what is told there?")


def _in_good_branch(value: ast.expr, function: ast.FunctionDef) -> bool:
    return any(value in ast.walk(each) for each in function.body if isinstance(each, ast.If))
