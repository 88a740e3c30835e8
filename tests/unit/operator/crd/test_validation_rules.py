"""Rules stand where Kubernetes can judge them; what they refuse, a real API server tries."""

import pytest

from kafscale.operator.crd.definitions import RESOURCES, schema
from kafscale.operator.crd.validation_rules import CLUSTER_RULES, TOPIC_RULES, Rule, ruled
from unit.operator.crd.structural import parts

both = pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.kind.kind)


@both
def test_every_rule_is_in_the_schema(resource):
    written = {
        path: part["x-kubernetes-validations"]
        for path, part in parts(schema(resource))
        if "x-kubernetes-validations" in part
    }
    assert set(written) == set(resource.rules)
    for path, rules in resource.rules.items():
        assert [each["rule"] for each in written[path]] == [rule.holds for rule in rules]
        assert [each["message"] for each in written[path]] == [rule.message for rule in rules]


@both
def test_no_rule_stands_with_an_object_that_is_filled_in_as_a_whole(resource):
    for path, part in parts(schema(resource)):
        if "x-kubernetes-validations" in part and "properties" in part:
            assert "default" not in part, path


@both
def test_whom_a_rule_blames_exists(resource):
    known = {path for path, _ in parts(schema(resource))}
    for path, rules in resource.rules.items():
        for rule in rules:
            assert f"{path}{rule.field}" in known


def test_a_rule_for_something_else_is_a_mistake_of_ours():
    with pytest.raises(KeyError):
        ruled({"type": "object", "properties": {}}, {"spec": [Rule("true", "never")]})


def test_a_message_is_one_line_without_a_full_stop():
    # The API server puts it behind the field and the value, and its own words behind it.
    for rules in (*CLUSTER_RULES.values(), *TOPIC_RULES.values()):
        for rule in rules:
            assert "\n" not in rule.message
            assert not rule.message.endswith(".")
            assert not rule.message.endswith(" ")
