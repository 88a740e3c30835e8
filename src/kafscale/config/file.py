"""Reads settings from a YAML file, with the line of each value.

An unknown or repeated key is an error. The file is read as a tree of YAML nodes, so that `id: 007`
and `bucket: on` stay text, and errors can name the line.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from kafscale.config.model import BY_PATH, GROUPS
from kafscale.config.schema import RawValue, SourceValues, suggestion

_NULL = "tag:yaml.org,2002:null"


def read_file(file: Path) -> SourceValues:
    """Read all values, and report unknown keys."""
    values = SourceValues()
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        values.problems.append(f"{file}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        values.problems.append(f"{file}: is not UTF-8 text")
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        values.problems.append(f"{file}{line}: is not YAML: {error.problem}")
    except yaml.YAMLError as error:
        values.problems.append(f"{file}: is not YAML: {error}")
    else:
        if root is not None:
            _read_group(file, "", root, values)
    return values


def _read_group(file: Path, group: str, node: yaml.Node, values: SourceValues) -> None:
    if node.tag == _NULL:
        return
    if not isinstance(node, yaml.MappingNode):
        values.problems.append(
            f"{group or 'the whole file'} ({_location(file, node)}): is a group of settings, not a "
            f"value; expected {_example(group)}"
        )
        return
    lines: dict[str, int] = {}
    for path, key, value in _children(group, node):
        origin = _location(file, key)
        if path in lines:
            values.problems.append(f"{path} ({origin}): is already set in line {lines[path]}")
        elif path in BY_PATH:
            _read_value(file, path, value, values)
        elif path in GROUPS:
            _read_group(file, path, value, values)
        else:
            hint = suggestion(path, (*BY_PATH, *GROUPS))
            values.problems.append(f"unknown setting {path} ({origin}): {hint}")
        lines.setdefault(path, key.start_mark.line + 1)


def _read_value(file: Path, path: str, node: yaml.Node, values: SourceValues) -> None:
    """Read the value of a setting; an empty value, as in `endpoint:`, means the default."""
    if node.tag == _NULL:
        return
    setting, origin = BY_PATH[path], _location(file, node)
    if isinstance(node, yaml.ScalarNode):
        values.values.append(RawValue(setting, node.value, origin))
    elif isinstance(node, yaml.SequenceNode) and all(
        isinstance(item, yaml.ScalarNode) for item in node.value
    ):
        values.values.append(RawValue(setting, [item.value for item in node.value], origin))
    else:
        problem = f"{path} ({origin}): contains nested keys or lists; expected {setting.type.takes}"
        values.problems.append(problem)


def _children(group: str, node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "(a key that is not text)"
        yield f"{group}.{name}" if group else name, key, value


def _location(file: Path, node: yaml.Node) -> str:
    return f"{file}:{node.start_mark.line + 1}"


def _example(group: str) -> str:
    path = next(path for path in BY_PATH if path.startswith(f"{group}." if group else ""))
    return f"keys with values, such as {path.removeprefix(f'{group}.')}"
