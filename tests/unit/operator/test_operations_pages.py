"""Pieces of resources in the pages on operations fit the schema, and brokers would start."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from kafscale.operator.crd.definitions import RESOURCES, schema
from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import read_cluster
from unit.operator.crd.structural import complaints, filled

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [*sorted((DOCS / "operations").glob("*.md")), DOCS / "kubernetes.md"]
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SCHEMA = schema(RESOURCES[0])["properties"]["spec"]
LEAST = {"brokers": {}, "s3": {"bucket": "records"}}
ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def pieces():
    """The specs of clusters that pages show, each completed by what it leaves out."""
    for page in PAGES:
        for number, (_, text) in enumerate(BLOCK.findall(page.read_text())):
            shown = yaml.safe_load(dedent(text))
            if isinstance(shown, dict) and "spec" in shown:
                yield pytest.param(LEAST | shown["spec"], id=f"{page.stem}-{number}")


PIECES = list(pieces())
every_piece = pytest.mark.parametrize("spec", PIECES)


@every_piece
def test_what_is_shown_fits(spec):
    assert complaints(filled(spec, SCHEMA), SCHEMA) == []


@every_piece
def test_brokers_start_with_what_is_shown(spec):
    metadata = {"name": "production", "namespace": "kafscale", "uid": "1"}
    cluster = read_cluster({"metadata": metadata, "spec": spec})
    assert config_map.problems(cluster, Platform(), ETCD) == []


def test_something_is_shown():
    assert len(PIECES) >= 4
