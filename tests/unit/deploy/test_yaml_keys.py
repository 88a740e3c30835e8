"""YAML files have no duplicate keys; parsers would silently use the last one."""

import re

import pytest
import yaml

from unit.deploy.chart import ROOT

FILES = [
    path
    for directory in ("deploy", "config", "examples")
    for path in sorted((ROOT / directory).rglob("*.yaml"))
]


def strip_templates(text):
    """Remove Helm templates; plain YAML is returned unchanged."""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("{{")]
    return re.sub(r"\{\{.*?\}\}", "filled-in", "\n".join(kept))


def duplicate_keys(node):
    """Return the duplicate keys of a node and its children."""
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        yield from (key for index, key in enumerate(keys) if key in keys[:index])
        children = [value for _, value in node.value]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    for each in children:
        yield from duplicate_keys(each)


def find_duplicates(text):
    documents = yaml.compose_all(strip_templates(text))
    return [key for document in documents for key in duplicate_keys(document)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_has_no_duplicate_keys(path):
    assert find_duplicates(path.read_text()) == []


def test_duplicate_keys_are_found():
    assert find_duplicates("a:\n- b: 1\n  {{- with .c }}\n  b: {{ . }}\n  {{- end }}\na: 2\n") == [
        "a",
        "b",
    ]
