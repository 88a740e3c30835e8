"""The Makefile has what the specification asks for, and builds what the chart names."""

import re

from unit.deploy.chart import ROOT, read

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*##", MAKEFILE, re.MULTILINE))


def test_the_targets_of_the_specification_are_there():
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


def test_every_target_is_phony():
    [phony] = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.replace("\\\n", " ").split()) == TARGETS


def test_every_image_has_a_dockerfile_and_the_chart_its_images():
    [images] = re.findall(r"^IMAGES +\?= (.*)$", MAKEFILE, re.MULTILINE)
    for image in images.split():
        assert (ROOT / "deploy" / "docker" / f"{image}.Dockerfile").exists()
    values = read("values.yaml")
    for part in ("broker", "operator", "console"):
        assert part in images.split()
        assert values[part]["image"]["repository"] == f"kafscale-{part}"
