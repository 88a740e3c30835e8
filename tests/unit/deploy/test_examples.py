"""Example jobs have valid commands, and their pods meet the restricted Pod Security Standard."""

import tomllib

import pytest
import typer
import yaml

from kafscale.cli.main import app
from kafscale.config.model import SETTINGS
from kafscale.operator.manifests import names
from unit.deploy.chart import CONFIG, ROOT
from unit.operator.manifests.pod_security import violations

DIRECTORY = ROOT / "examples" / "kubernetes"
OBJECTS = [
    document
    for path in sorted(DIRECTORY.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
CRON_JOBS = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == "CronJob"}
[APPLICATION] = [each["spec"] for each in OBJECTS if each["kind"] == "SparkApplication"]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
IMAGE = f"kafscale-spark:{VERSION}"

every_cron_job = pytest.mark.parametrize("name", CRON_JOBS)


def template(name):
    return CRON_JOBS[name]["spec"]["jobTemplate"]["spec"]["template"]


def container(name):
    [only] = template(name)["spec"]["containers"]
    return only


def parse(arguments):
    """Parse the arguments of a job without running it."""
    group = typer.main.get_command(app).commands["spark"]
    with typer.Context(group) as context:
        name, command, rest = group.resolve_command(context, list(arguments))
        return name, command.make_context(name, rest, parent=context).params


def test_every_scheduled_job_has_an_example():
    assert set(CRON_JOBS) == {
        f"kafscale-{job}" for job in ("lake", "merge", "compact", "scrub", "report")
    }


@every_cron_job
def test_command_is_valid(name):
    first, *arguments = container(name)["args"]
    assert first == "spark"
    assert f"kafscale-{parse(arguments)[0]}" == name


def test_spark_application_is_the_continuous_lake_job():
    name, options = parse(APPLICATION["arguments"])
    _, once = parse(container("kafscale-lake")["args"][1:])
    assert name == "lake"
    assert {key for key, value in options.items() if value != once[key]} == {"once", "interval"}
    assert once["once"]
    assert not options["once"]


@every_cron_job
def test_pod_meets_the_restricted_standard(name):
    assert violations(template(name)) == []
    assert container(name)["securityContext"]["readOnlyRootFilesystem"]


@pytest.mark.parametrize("part", ["driver", "executor"])
def test_pods_of_spark_meet_the_restricted_standard(part):
    pod = APPLICATION[part]
    one = {"name": part, "securityContext": pod["securityContext"]}
    spec = {"securityContext": pod["podSecurityContext"], "containers": [one]}
    assert violations({"spec": {**spec, "volumes": APPLICATION["volumes"]}}) == []


def test_images_have_the_project_version():
    assert {container(name)["image"] for name in CRON_JOBS} == {IMAGE}
    assert APPLICATION["image"] == IMAGE
    [pin] = [
        each
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]["spark"]
        if each.startswith("pyspark==")
    ]
    assert pin == f"pyspark=={APPLICATION['sparkVersion']}"


def test_examples_use_the_sample_cluster():
    cluster = yaml.safe_load((CONFIG / "samples" / "cluster.yaml").read_text())
    [settings] = [each["data"] for each in OBJECTS if each["kind"] == "ConfigMap"]
    metadata, s3 = cluster["metadata"], cluster["spec"]["s3"]
    service = f"{metadata['name']}-broker.{metadata['namespace']}.svc"
    directory = "/etc/kafscale/control-tls"
    assert settings == {
        "KAFSCALE_S3_BUCKET": s3["bucket"],
        "KAFSCALE_S3_REGION": s3["region"],
        "KAFSCALE_S3_NAMESPACE": f"{metadata['namespace']}.{metadata['name']}",
        "KAFSCALE_CONTROL_SERVERS": f"{service}:{names.CONTROL_PORT}",
        "KAFSCALE_CLIENT_CONTROL_TLS_ENABLED": "true",
        "KAFSCALE_CLIENT_CONTROL_TLS_CA_FILE": f"{directory}/ca.crt",
        "KAFSCALE_CLIENT_CONTROL_TLS_CERT_FILE": f"{directory}/tls.crt",
        "KAFSCALE_CLIENT_CONTROL_TLS_KEY_FILE": f"{directory}/tls.key",
    }
    assert settings.keys() <= {variable for each in SETTINGS for variable in each.variables}
    for name in CRON_JOBS:
        [_, secret] = container(name)["envFrom"]
        assert secret == {"secretRef": {"name": s3["credentialsSecret"]}}


@pytest.mark.parametrize("name", ["merge", "compact", "report"])
def test_jobs_that_use_the_control_plane_mount_its_certificate(name):
    pod = template(f"kafscale-{name}")["spec"]
    secrets = {each["name"]: each["secret"] for each in pod["volumes"] if "secret" in each}
    [mount] = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] in secrets]
    assert mount["mountPath"] == "/etc/kafscale/control-tls"
    assert secrets[mount["name"]]["secretName"] == "production-control-client-tls"


def test_examples_are_in_the_readme_and_the_kustomization():
    table = (DIRECTORY / "README.md").read_text()
    listed = yaml.safe_load((DIRECTORY / "kustomization.yaml").read_text())["resources"]
    names = {path.name for path in DIRECTORY.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == names - {"lake-stream.yaml"}
    assert all(f"({name})" in table for name in names)
