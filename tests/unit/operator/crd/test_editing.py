"""The schemas for editors: what fits the CRDs fits them, and a slip of the pen is found."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from kafscale.operator.crd.definitions import RESOURCES
from kafscale.operator.crd.editing import DIALECT, json_schema

SAMPLES = Path(__file__).parents[4] / "config" / "samples"
SCHEMAS = {resource.kind.kind: json_schema(resource) for resource in RESOURCES}
OURS = [
    document
    for path in sorted(SAMPLES.rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] in SCHEMAS
]


def complaints(body):
    found = Draft7Validator(SCHEMAS[body["kind"]]).iter_errors(body)
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in found]


def sample(kind):
    return deepcopy(next(body for body in OURS if body["kind"] == kind))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_one_of_its_dialect(kind):
    assert SCHEMAS[kind]["$schema"] == DIALECT == Draft7Validator.META_SCHEMA["$schema"]
    Draft7Validator.check_schema(SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
def test_no_word_is_left_that_only_kubernetes_knows(kind):
    assert "x-kubernetes" not in str(SCHEMAS[kind])


@pytest.mark.parametrize("body", OURS, ids=lambda body: body["metadata"]["name"])
def test_a_sample_fits(body):
    assert complaints(body) == []


def test_a_member_that_nobody_knows_is_refused():
    body = sample("KafscaleCluster")
    body["spec"]["brokers"]["replica"] = 3
    [said] = complaints(body)
    assert said.startswith("spec.brokers: ")
    assert "'replica' was unexpected" in said


def test_what_may_be_anything_is_left_alone():
    body = sample("KafscaleCluster")
    body["spec"]["config"]["settings"] = {"broker": {"anything": ["goes"]}}
    body["spec"]["brokers"]["tolerations"] = [{"key": "broker", "operator": "Exists"}]
    body["metadata"]["annotations"] = {"kafscale.io/wake": "now"}
    assert complaints(body) == []


def test_maps_have_names_of_their_own_and_values_of_one_kind():
    body = sample("KafscaleTopic")
    body["spec"]["config"] = {"cleanup.policy": "compact"}
    assert complaints(body) == []
    body["spec"]["config"] = {"cleanup.policy": 1}
    assert complaints(body) == ["spec.config.cleanup.policy: 1 is not of type 'string'"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("partitions", 0), ("partitions", "many"), ("deletionPolicy", "delete"), ("topicName", "a b")],
)
def test_what_the_api_server_would_refuse_is_refused(field, value):
    body = sample("KafscaleTopic")
    body["spec"][field] = value
    assert len(complaints(body)) == 1


def test_a_resource_says_what_it_is_and_what_it_wants():
    assert sorted(complaints({"kind": "KafscaleTopic", "apiVersion": "v1"})) == [
        ": 'metadata' is a required property",
        ": 'spec' is a required property",
        "apiVersion: 'kafscale.io/v1alpha1' was expected",
    ]
