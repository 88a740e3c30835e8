"""Dockerfiles: of known parts, without a root, small, and with no word about anybody's registry."""

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
SETTLED = {"broker": ["broker"], "operator": ["operator"], "console": ["console"]}

every_image = pytest.mark.parametrize("name", FILES)


def instructions(name):
    """The pairs of an instruction and what follows it, in order."""
    text = re.sub(r"^#.*\n", "", FILES[name].read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line.strip()]


def final(name):
    """The instructions of the image itself: all after the last FROM."""
    found = instructions(name)
    last = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[last + 1 :]


def one(name, word):
    [argument] = [rest for each, rest in final(name) if each == word]
    return argument


def test_there_is_one_for_each_part():
    assert set(FILES) == {"broker", "operator", "console", "spark"}


@every_image
def test_it_is_made_of_images_that_can_be_chosen(name):
    defaults = dict(rest.split("=") for word, rest in instructions(name) if word == "ARG")
    bases = [rest.split()[0] for word, rest in instructions(name) if word == "FROM"]
    assert len(bases) >= 2
    for base in bases:
        assert re.fullmatch(r"\$\{(\w+_IMAGE)\}", base)
        default = defaults[base[2:-1]]
        assert "/" not in default
        assert re.search(r":v?\d", default)


@every_image
def test_nobody_in_it_is_root(name):
    words = [word for word, _ in final(name)]
    assert one(name, "USER") == USER
    assert "RUN" not in words[words.index("USER") :]


@every_image
def test_it_needs_to_write_nothing(name):
    environment = one(name, "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment
    assert "HOME=/tmp" in environment


@every_image
def test_it_leaves_probes_to_kubernetes(name):
    assert one(name, "HEALTHCHECK") == "NONE"


@every_image
def test_it_says_what_it_is(name):
    labels = one(name, "LABEL")
    assert f'org.opencontainers.image.title="kafscale-{name}"' in labels
    for label in ("description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@every_image
def test_what_is_copied_is_there_and_reaches_the_builder(name):
    for word, rest in instructions(name):
        if word == "COPY" and "--from" not in rest:
            for source in shlex.split(rest)[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in IGNORED or source.startswith("deploy/docker/")


def test_nothing_else_reaches_the_builder():
    assert IGNORED[1] == "*"
    assert "!deploy/docker/*.sh" in IGNORED


@every_image
def test_it_has_the_extra_that_it_needs_and_no_other(name):
    steps = [rest for word, rest in instructions(name) if word == "RUN"]
    [extras] = [re.findall(r"dependencies ?(.*)", step)[0] for step in steps if "depend" in step]
    assert extras.split() == EXTRAS[name]
    assert set(EXTRAS[name]) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", SETTLED)
def test_it_runs_its_part(name):
    assert json.loads(one(name, "ENTRYPOINT")) == ["kafscale"]
    assert json.loads(one(name, "CMD")) == SETTLED[name]


def test_jobs_are_named_when_they_are_run():
    assert json.loads(one("spark", "ENTRYPOINT")) == ["spark-entry"]
    assert "CMD" not in [word for word, _ in final("spark")]


def test_ports_are_those_of_the_settings():
    assert one("broker", "EXPOSE").split() == ["9092", "9093"]
    assert one("console", "EXPOSE") == str(DEFAULTS["ui.port"])
    ports = [DEFAULTS["operator.metricsPort"], DEFAULTS["operator.controlPort"]]
    assert one("operator", "EXPOSE").split() == [str(port) for port in ports]


def test_snapshots_are_restored_by_the_etcd_that_takes_them():
    etcd = read("values.yaml")["etcd"]["image"]
    assert f"ARG ETCD_IMAGE={etcd['repository']}:{etcd['tag']}" in FILES["operator"].read_text()
    assert ("COPY", "--from=etcd /usr/local/bin/etcdutl /usr/local/bin/etcdutl") in final(
        "operator"
    )
