"""The Makefile has the targets of the specification, and builds the images of the chart."""

import re

from unit.deploy.chart import ROOT, read

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*##", MAKEFILE, re.MULTILINE))


def test_targets_of_the_specification_exist():
    assert {
        "build",
        "test",
        "test-integration",
        "lint",
        "docker",
        "docker-push",
        "generate",
        "helm-package",
        "deploy-crds",
        "deploy",
    } <= TARGETS


def test_all_targets_are_phony():
    [phony] = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.replace("\\\n", " ").split()) == TARGETS


def test_images_have_dockerfiles_and_are_used_by_the_chart():
    [images] = re.findall(r"^IMAGES +\?= (.*)$", MAKEFILE, re.MULTILINE)
    for image in images.split():
        assert (ROOT / "deploy" / "docker" / f"{image}.Dockerfile").exists()
    values = read("values.yaml")
    for part in ("broker", "operator", "console"):
        assert part in images.split()
        assert values[part]["image"]["repository"] == f"kafscale-{part}"
