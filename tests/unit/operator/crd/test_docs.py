"""Tests that the reference lists every field; test_docs compares the committed page."""

from kafscale.operator.crd.definitions import RESOURCES, schema
from kafscale.operator.crd.docs import page
from unit.operator.crd.structural import parts


def test_every_field_has_a_row():
    text = page()
    for resource in RESOURCES:
        for path, part in parts(schema(resource)):
            name = path.rpartition(".")[2]
            if path.startswith(("spec.", "status.")) and not name.endswith(("[]", "{}")):
                assert f"| `{name}` |" in text, path
                assert part["description"] in text, path


def test_every_rule_is_listed():
    for resource in RESOURCES:
        for rules in resource.rules.values():
            for rule in rules:
                assert f"{rule.message}." in " ".join(page().split())


def test_types_and_defaults_are_readable():
    lines = page().splitlines()
    for row in (
        "| `replicas` | integer, 1 to 1000 | `3` |",
        "| `partitions` | integer, 1 to 1024 | required |",
        "| `minReplicas` | integer, 1 to 1000 | unset |",
        "| `endpoints` | list of strings | empty |",
        "| `config` | map of strings | empty |",
        '| `monitoringNamespaceLabels` | map of strings | `{"kubernetes.io/metadata.name":',
        "| `deletionPolicy` | `Delete`, `Retain` | `Delete` |",
        "| `lastTransitionTime` | time |",
    ):
        assert any(line.startswith(row) for line in lines), row
