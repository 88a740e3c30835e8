"""Specs in the operations pages match the schema, and brokers would start with them."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from generators.crds.definitions import RESOURCES, schema
from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import read_cluster
from unit.generators.crds.structural import violations_of, with_defaults

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [*sorted((DOCS / "operations").glob("*.md")), DOCS / "kubernetes.md"]
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SCHEMA = schema(RESOURCES[0])["properties"]["spec"]
REQUIRED = {"brokers": {}, "s3": {"bucket": "records"}}
ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def specs_in_pages():
    """The cluster specs in the pages, each completed by required fields."""
    for page in PAGES:
        for number, (_, text) in enumerate(BLOCK.findall(page.read_text())):
            document = yaml.safe_load(dedent(text))
            if isinstance(document, dict) and "spec" in document:
                yield pytest.param(REQUIRED | document["spec"], id=f"{page.stem}-{number}")


SPECS = list(specs_in_pages())
every_spec = pytest.mark.parametrize("spec", SPECS)


@every_spec
def test_specs_match_the_schema(spec):
    assert violations_of(with_defaults(spec, SCHEMA), SCHEMA) == []


@every_spec
def test_brokers_start_with_the_specs(spec):
    metadata = {"name": "production", "namespace": "kafscale", "uid": "1"}
    cluster = read_cluster({"metadata": metadata, "spec": spec})
    assert config_map.problems(cluster, Platform(), ETCD) == []


def test_pages_contain_specs():
    assert len(SPECS) >= 4
