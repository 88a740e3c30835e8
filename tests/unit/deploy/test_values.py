"""The values of the chart are documented, validated and used."""

import json
import re
import tomllib

import jsonschema
import pytest

from kafscale.config.model import SETTINGS
from services.for_each import for_each
from unit.deploy.chart import CHART, ROOT, read

VALUES = read("values.yaml")
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = {setting.path: setting.default for setting in SETTINGS}
FILES = sorted(path for path in CHART.rglob("*") if path.is_file())
OPEN = {"cluster.spec", "operator.affinity"}
"""Values that Kubernetes validates."""
HOST = re.compile(r"\b(docker|ghcr|gcr|quay|mcr|public\.ecr)\.(io|com|aws)\b|amazonaws\.com")


def documented() -> set[str]:
    """Return the paths of the values in values.yaml that have a `# --` comment."""
    result, path, has_comment = set(), [], False
    for line in (CHART / "values.yaml").read_text().splitlines():
        if match := re.fullmatch(r"( *)([\w.]+):.*", line):
            path[len(match[1]) // 2 :] = [match[2]]
            if has_comment:
                result.add(".".join(path))
            has_comment = False
        else:
            has_comment = line.strip().startswith("# -- ")
    return result


def leaves(values, documented_paths, path=""):
    """Return the paths of values that are documented or have no members."""
    for name, value in values.items():
        child = f"{path}.{name}".strip(".")
        if isinstance(value, dict) and value and child not in documented_paths:
            yield from leaves(value, documented_paths, child)
        else:
            yield child


def resolved(schema):
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    return schema


def schema_of(path):
    result = SCHEMA
    for name in path.split("."):
        result = resolved(result["properties"][name])
    return result


def validation_error(values):
    try:
        jsonschema.validate(values, SCHEMA)
    except jsonschema.ValidationError as error:
        return error.message
    return ""


def merged(base, change):
    return {
        name: merged(base.get(name) or {}, change[name])
        if isinstance(change.get(name), dict)
        else change.get(name, base.get(name))
        for name in {**base, **change}
    }


def test_all_values_are_documented():
    paths = documented()
    assert set(leaves(VALUES, paths)) == paths


@for_each(sorted(documented()))
def test_value_has_a_schema(path):
    schema = schema_of(path)
    assert schema.get("type") or schema.get("enum")
    if schema.get("type") == "object" and path not in OPEN:
        assert "additionalProperties" in schema


@pytest.mark.parametrize("name", ["values.yaml", "values-try-out.yaml"])
def test_committed_values_are_valid(name):
    assert validation_error(merged(VALUES, read(name))) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"operater": {}},
        {"operator": {"replica": 1}},
        {"operator": {"replicas": "two"}},
        {"operator": {"namespaces": ["Not_A_Name"]}},
        {"operator": {"namespaces": ["shop-*"]}},
        {"operator": {"namespaces": "*"}},
        {"operator": {"allowedBuckets": ["records"]}},
        {"operator": {"allowedBuckets": ["shop/records,bank/records"]}},
        {"operator": {"allowedRoles": ["arn:aws:iam::1:role/records"]}},
        {"operator": {"allowedEndpoints": ["shop/http://minio:9000"]}},
        {"operator": {"image": {"digest": "sha256:short"}}},
        {"operator": {"image": {"tag": "a b"}}},
        {"operator": {"log": {"level": "loud"}}},
        {"broker": {"image": {"pullPolicy": "Always"}}},
        {"cluster": {"enabled": True}},
        {"topics": [{"name": "a", "spec": {}}]},
        {"minio": {"secretKey": "short"}},
    ],
    ids=json.dumps,
)
def test_invalid_values_are_rejected(change):
    assert validation_error(merged(VALUES, change))


def test_chart_has_the_project_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = read("Chart.yaml")
    assert (about["version"], about["appVersion"]) == (version, version)


def test_image_tags_are_pinned_or_the_chart_version():
    ours = ("operator", "broker", "console")
    images = {name: VALUES[name]["image"] for name in (*ours, "etcd", "minio")}
    assert all(image["tag"] != "latest" and not image["digest"] for image in images.values())
    assert {images[name]["tag"] for name in ours} == {""}


def test_defaults_match_the_default_settings():
    operator, etcd = VALUES["operator"], VALUES["etcd"]["image"]
    assert operator["resyncSeconds"] == DEFAULTS["operator.resyncSec"]
    assert operator["leaseDurationSeconds"] == DEFAULTS["operator.leaseDurationSec"]
    assert operator["clusterDomain"] == DEFAULTS["operator.clusterDomain"]
    assert (operator["log"]["level"], operator["log"]["format"]) == (
        DEFAULTS["logging.level"],
        DEFAULTS["logging.format"],
    )
    assert f"{etcd['repository']}:{etcd['tag']}" == DEFAULTS["operator.etcdImage"]
    for name in ("operator", "broker"):
        repository = VALUES[name]["image"]["repository"]
        assert f"{repository}:latest" == DEFAULTS[f"operator.{name}Image"]


def test_lists_have_the_syntax_of_the_settings():
    settings = {setting.path: setting for setting in SETTINGS}
    entries = {
        "namespaces": ["shop", "*"],
        "allowedBuckets": ["shop/records", "*/records/prod-*", "s*/*"],
        "allowedRoles": ["shop/arn:aws:iam::1:role/a/b", "*/*"],
        "allowedEndpoints": ["shop/minio.storage:9000", "*/*.storage", "*/[fd00::1]:9000"],
    }
    for name, valid in entries.items():
        assert validation_error({"operator": {name: valid}}) == ""
        assert settings[f"operator.{name}"].type.read(",".join(valid)) == tuple(valid)


def test_environment_variables_of_the_operator_exist():
    written = (CHART / "templates" / "operator" / "_variables.tpl").read_text()
    known = {variable for setting in SETTINGS for variable in setting.variables}
    named = set(re.findall(r"- name: (KAFSCALE_\w+)", written))
    assert named
    assert named <= known


@for_each(FILES)
def test_file_names_no_registry(path):
    assert not HOST.search(path.read_text())


def test_all_values_are_used():
    used = "\n".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    used = used.replace("$.Values", ".Values").replace("$root.Values", ".Values")
    for path in documented():
        *parents, name = path.split(".")
        is_named = f".Values.{path}" in used
        is_member = parents and f".Values.{'.'.join(parents)}" in used and f".{name}" in used
        assert is_named or is_member, path
