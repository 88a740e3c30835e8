"""Tests of the generated files: CRDs, and JSON schemas for editors."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from generators.crds.definitions import RESOURCES, definitions
from generators.crds.rendering import DIALECT, json_schema, render_definitions

SAMPLES = Path(__file__).parents[4] / "config" / "samples"
SCHEMAS = {resource.kind.kind: json_schema(resource) for resource in RESOURCES}
OURS = [
    document
    for path in sorted(SAMPLES.rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] in SCHEMAS
]


def violations_of(body):
    result = Draft7Validator(SCHEMAS[body["kind"]]).iter_errors(body)
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in result]


def sample(kind):
    return deepcopy(next(body for body in OURS if body["kind"] == kind))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schema_is_valid_in_its_dialect(kind):
    assert SCHEMAS[kind]["$schema"] == DIALECT == Draft7Validator.META_SCHEMA["$schema"]
    Draft7Validator.check_schema(SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
def test_no_kubernetes_keywords_are_left(kind):
    assert "x-kubernetes" not in str(SCHEMAS[kind])


@pytest.mark.parametrize("body", OURS, ids=lambda body: body["metadata"]["name"])
def test_samples_match_the_json_schema(body):
    assert violations_of(body) == []


def test_unknown_field_is_rejected():
    body = sample("KafscaleCluster")
    body["spec"]["brokers"]["replica"] = 3
    [violation] = violations_of(body)
    assert violation.startswith("spec.brokers: ")
    assert "'replica' was unexpected" in violation


def test_free_form_fields_are_accepted():
    body = sample("KafscaleCluster")
    body["spec"]["config"]["settings"] = {"broker": {"anything": ["goes"]}}
    body["spec"]["brokers"]["tolerations"] = [{"key": "broker", "operator": "Exists"}]
    body["metadata"]["annotations"] = {"kafscale.io/wake": "now"}
    assert violations_of(body) == []


def test_maps_accept_any_key_with_typed_values():
    body = sample("KafscaleTopic")
    body["spec"]["config"] = {"cleanup.policy": "compact"}
    assert violations_of(body) == []
    body["spec"]["config"] = {"cleanup.policy": 1}
    assert violations_of(body) == ["spec.config.cleanup.policy: 1 is not of type 'string'"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("partitions", 0), ("partitions", "many"), ("deletionPolicy", "delete"), ("topicName", "a b")],
)
def test_invalid_values_are_rejected(field, value):
    body = sample("KafscaleTopic")
    body["spec"][field] = value
    assert len(violations_of(body)) == 1


def test_required_properties():
    assert sorted(violations_of({"kind": "KafscaleTopic", "apiVersion": "v1"})) == [
        ": 'metadata' is a required property",
        ": 'spec' is a required property",
        "apiVersion: 'kafscale.io/v1alpha1' was expected",
    ]


ROOT = Path(__file__).parents[4]


def test_each_file_has_one_definition():
    assert [yaml.safe_load(text) for text in render_definitions().values()] == definitions()


def test_kustomization_lists_every_file():
    kustomization = yaml.safe_load((ROOT / "config/crd/kustomization.yaml").read_text())
    assert kustomization["resources"] == [f"bases/{name}" for name in render_definitions()]
