"""The files that the repository keeps are those that the code makes."""

from pathlib import Path

import pytest
import yaml

from kafscale.operator.crd import definitions, rendered, rendered_schemas

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("directory", ["config/crd/bases", "deploy/helm/kafscale/crds"])
def test_the_committed_definitions_are_what_the_code_says(directory):
    committed = {path.name: path.read_text() for path in (ROOT / directory).iterdir()}
    assert committed == rendered(), "run `make generate`"


def test_the_committed_schemas_are_what_the_code_says():
    committed = {path.name: path.read_text() for path in (ROOT / "api/v1alpha1").glob("*.json")}
    assert committed == rendered_schemas(), "run `make generate`"


def test_a_file_holds_one_definition():
    assert [yaml.safe_load(text) for text in rendered().values()] == definitions()


def test_kustomize_takes_every_file():
    kustomization = yaml.safe_load((ROOT / "config/crd/kustomization.yaml").read_text())
    assert kustomization["resources"] == [f"bases/{name}" for name in rendered()]
