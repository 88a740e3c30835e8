"""No key stands twice in a file of YAML: the last one would win, and nobody would be told."""

import re

import pytest
import yaml

from unit.deploy.chart import ROOT

FILES = [
    path
    for directory in ("deploy", "config", "examples")
    for path in sorted((ROOT / directory).rglob("*.yaml"))
]


def plain(text):
    """A template without what Helm fills in; to YAML without templates, nothing happens."""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("{{")]
    return re.sub(r"\{\{.*?\}\}", "filled-in", "\n".join(kept))


def twice(node):
    """The keys that a mapping, or one in there, has already."""
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        yield from (key for index, key in enumerate(keys) if key in keys[:index])
        inside = [value for _, value in node.value]
    else:
        inside = node.value if isinstance(node, yaml.SequenceNode) else []
    for each in inside:
        yield from twice(each)


def found_twice(text):
    return [key for document in yaml.compose_all(plain(text)) for key in twice(document)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_key_stands_twice(path):
    assert found_twice(path.read_text()) == []


def test_a_key_that_stands_twice_is_seen():
    assert found_twice("a:\n- b: 1\n  {{- with .c }}\n  b: {{ . }}\n  {{- end }}\na: 2\n") == [
        "a",
        "b",
    ]
