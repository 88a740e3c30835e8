"""Tests of the validation rules' places; a real API server evaluates them in tests/kubernetes."""

import pytest

from generators.crds.definitions import RESOURCES, schema
from generators.crds.validation_rules import CLUSTER_RULES, TOPIC_RULES, Rule, add_rules
from unit.generators.crds.structural import parts

both = pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.kind.kind)


@both
def test_every_rule_is_in_the_schema(resource):
    validations = {
        path: part["x-kubernetes-validations"]
        for path, part in parts(schema(resource))
        if "x-kubernetes-validations" in part
    }
    assert set(validations) == set(resource.rules)
    for path, rules in resource.rules.items():
        assert [each["rule"] for each in validations[path]] == [rule.expression for rule in rules]
        assert [each["message"] for each in validations[path]] == [rule.message for rule in rules]


@both
def test_rules_are_not_on_defaulted_objects(resource):
    for path, part in parts(schema(resource)):
        if "x-kubernetes-validations" in part and "properties" in part:
            assert "default" not in part, path


@both
def test_field_of_a_rule_exists(resource):
    known = {path for path, _ in parts(schema(resource))}
    for path, rules in resource.rules.items():
        for rule in rules:
            assert f"{path}{rule.field}" in known


def test_rule_with_an_unknown_path_is_a_bug():
    with pytest.raises(KeyError):
        add_rules({"type": "object", "properties": {}}, {"spec": [Rule("true", "never")]})


def test_messages_are_one_line_without_full_stop():
    # The API server embeds it in its own message.
    for rules in (*CLUSTER_RULES.values(), *TOPIC_RULES.values()):
        for rule in rules:
            assert "\n" not in rule.message
            assert not rule.message.endswith(".")
            assert not rule.message.endswith(" ")
