"""Values of the chart: each is documented and checked, and none is a surprise."""

import json
import re
import tomllib

import jsonschema
import pytest

from kafscale.config.model import SETTINGS
from unit.deploy.chart import CHART, ROOT, read

VALUES = read("values.yaml")
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = {setting.path: setting.default for setting in SETTINGS}
FILES = sorted(path for path in CHART.rglob("*") if path.is_file())
OPEN = {"cluster.spec", "operator.affinity"}
"""What Kubernetes itself judges."""
HOST = re.compile(r"\b(docker|ghcr|gcr|quay|mcr|public\.ecr)\.(io|com|aws)\b|amazonaws\.com")


def documented() -> set[str]:
    """The values in values.yaml that a comment with a dash is about, by their paths."""
    found, path, is_told = set(), [], False
    for line in (CHART / "values.yaml").read_text().splitlines():
        if match := re.fullmatch(r"( *)([\w.]+):.*", line):
            path[len(match[1]) // 2 :] = [match[2]]
            if is_told:
                found.add(".".join(path))
            is_told = False
        else:
            is_told = line.strip().startswith("# -- ")
    return found


def leaves(values, told, path=""):
    """The paths of values, down to where they are documented or have no members."""
    for name, value in values.items():
        here = f"{path}.{name}".strip(".")
        if isinstance(value, dict) and value and here not in told:
            yield from leaves(value, told, here)
        else:
            yield here


def resolved(schema):
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    return schema


def schema_of(path):
    found = SCHEMA
    for name in path.split("."):
        found = resolved(found["properties"][name])
    return found


def refusal(values):
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


def test_every_value_is_documented():
    told = documented()
    assert set(leaves(VALUES, told)) == told


@pytest.mark.parametrize("path", sorted(documented()))
def test_every_value_is_checked(path):
    schema = schema_of(path)
    assert schema.get("type") or schema.get("enum")
    if schema.get("type") == "object" and path not in OPEN:
        assert "additionalProperties" in schema


@pytest.mark.parametrize("name", ["values.yaml", "values-try-out.yaml"])
def test_our_own_values_pass(name):
    assert refusal(merged(VALUES, read(name))) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"operater": {}},
        {"operator": {"replica": 1}},
        {"operator": {"replicas": "two"}},
        {"operator": {"namespaces": ["Not_A_Name"]}},
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
def test_what_makes_no_sense_is_refused(change):
    assert refusal(merged(VALUES, change))


def test_versions_are_the_projects():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = read("Chart.yaml")
    assert (about["version"], about["appVersion"]) == (version, version)


def test_images_of_ours_have_the_charts_version_and_none_is_the_latest():
    ours = ("operator", "broker", "console")
    images = {name: VALUES[name]["image"] for name in (*ours, "etcd", "minio")}
    assert all(image["tag"] != "latest" and not image["digest"] for image in images.values())
    assert {images[name]["tag"] for name in ours} == {""}


def test_defaults_are_those_of_the_operator_itself():
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


def test_variables_of_the_operator_exist():
    written = (CHART / "templates" / "operator" / "_variables.tpl").read_text()
    known = {variable for setting in SETTINGS for variable in setting.variables}
    named = set(re.findall(r"- name: (KAFSCALE_\w+)", written))
    assert named
    assert named <= known


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CHART)))
def test_no_file_knows_a_registry(path):
    assert not HOST.search(path.read_text())


def test_values_that_nobody_uses_do_not_exist():
    used = "\n".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    used = used.replace("$.Values", ".Values").replace("$root.Values", ".Values")
    for path in documented():
        *parents, name = path.split(".")
        is_named = f".Values.{path}" in used
        is_member = parents and f".Values.{'.'.join(parents)}" in used and f".{name}" in used
        assert is_named or is_member, path
