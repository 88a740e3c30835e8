"""Dockerfiles use pinned base images, do not run as root, and name no registry."""

import json
import re
import shlex
import tomllib

import pytest

from kafscale.config.model import SETTINGS
from unit.deploy.chart import ROOT, read

DIRECTORY = ROOT / "deploy" / "docker"
FILES = {path.stem: path for path in sorted(DIRECTORY.glob("*.Dockerfile"))}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEFAULTS = {setting.path: setting.default for setting in SETTINGS}
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()
USER = "65532:65532"
EXTRAS = {
    "broker": ["tracing"],
    "operator": ["operator", "tracing"],
    "console": ["console"],
    "spark": ["spark"],
}
COMMANDS = {"broker": ["broker"], "operator": ["operator"], "console": ["console"]}

every_image = pytest.mark.parametrize("name", FILES)


def instructions(name):
    """Return the instructions and their arguments, in order."""
    text = re.sub(r"^#.*\n", "", FILES[name].read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line.strip()]


def final(name):
    """Return the instructions of the final stage."""
    steps = instructions(name)
    last = max(index for index, (word, _) in enumerate(steps) if word == "FROM")
    return steps[last + 1 :]


def argument_of(name, word):
    [argument] = [arguments for each, arguments in final(name) if each == word]
    return argument


def test_every_component_has_a_dockerfile():
    assert set(FILES) == {"broker", "operator", "console", "spark"}


@every_image
def test_base_images_are_pinned_arguments(name):
    defaults = dict(arguments.split("=") for word, arguments in instructions(name) if word == "ARG")
    bases = [arguments.split()[0] for word, arguments in instructions(name) if word == "FROM"]
    assert len(bases) >= 2
    for base in bases:
        assert re.fullmatch(r"\$\{(\w+_IMAGE)\}", base)
        default = defaults[base[2:-1]]
        assert "/" not in default
        assert re.search(r":v?\d", default)


@every_image
def test_image_does_not_run_as_root(name):
    words = [word for word, _ in final(name)]
    assert argument_of(name, "USER") == USER
    assert "RUN" not in words[words.index("USER") :]


@every_image
def test_image_works_with_a_read_only_file_system(name):
    environment = argument_of(name, "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment
    assert "HOME=/tmp" in environment


@every_image
def test_image_has_no_health_check(name):
    assert argument_of(name, "HEALTHCHECK") == "NONE"


@every_image
def test_image_has_labels(name):
    labels = argument_of(name, "LABEL")
    assert f'org.opencontainers.image.title="kafscale-{name}"' in labels
    for label in ("description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@every_image
def test_copied_files_exist_and_are_in_the_build_context(name):
    for word, arguments in instructions(name):
        if word == "COPY" and "--from" not in arguments:
            for source in shlex.split(arguments)[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in IGNORED or source.startswith("deploy/docker/")


def test_other_files_are_not_in_the_build_context():
    assert IGNORED[1] == "*"
    assert "!deploy/docker/*.sh" in IGNORED


@every_image
def test_image_installs_exactly_the_required_extras(name):
    steps = [arguments for word, arguments in instructions(name) if word == "RUN"]
    [extras] = [re.findall(r"dependencies ?(.*)", step)[0] for step in steps if "depend" in step]
    assert extras.split() == EXTRAS[name]
    assert set(EXTRAS[name]) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", COMMANDS)
def test_image_runs_its_command(name):
    assert json.loads(argument_of(name, "ENTRYPOINT")) == ["kafscale"]
    assert json.loads(argument_of(name, "CMD")) == COMMANDS[name]


def test_spark_image_has_no_default_command():
    assert json.loads(argument_of("spark", "ENTRYPOINT")) == ["spark-entry"]
    assert "CMD" not in [word for word, _ in final("spark")]


def test_exposed_ports_match_the_default_settings():
    assert argument_of("broker", "EXPOSE").split() == ["9092", "9093", "9095"]
    assert argument_of("console", "EXPOSE") == str(DEFAULTS["ui.port"])
    ports = [DEFAULTS["operator.metricsPort"], DEFAULTS["operator.controlPort"]]
    assert argument_of("operator", "EXPOSE").split() == [str(port) for port in ports]


def test_etcdutl_has_the_version_of_the_etcd_image():
    etcd = read("values.yaml")["etcd"]["image"]
    assert f"ARG ETCD_IMAGE={etcd['repository']}:{etcd['tag']}" in FILES["operator"].read_text()
    assert ("COPY", "--from=etcd /usr/local/bin/etcdutl /usr/local/bin/etcdutl") in final(
        "operator"
    )
