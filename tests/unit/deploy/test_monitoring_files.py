"""The committed files for Prometheus and Grafana equal the generated ones."""

import pytest
import yaml

from kafscale.monitoring.files import CHART, deployed_files
from unit.deploy.chart import ROOT

DEPLOYED = deployed_files()


@pytest.mark.parametrize("name", DEPLOYED)
def test_committed_file_equals_the_generated_one(name):
    assert (ROOT / "deploy" / name).read_text() == DEPLOYED[name], "run `make docs`"


def test_there_are_no_outdated_dashboards():
    committed = {path.name for path in (ROOT / "deploy" / CHART / "dashboards").iterdir()}
    assert {f"{CHART}/dashboards/{name}" for name in committed} <= DEPLOYED.keys()


def test_grafana_provisioning_uses_the_path_of_the_docs():
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    [provider] = yaml.safe_load((provisioning / "dashboards" / "kafscale.yaml").read_text())[
        "providers"
    ]
    page = (ROOT / "docs" / "monitoring.md").read_text()
    assert f"dashboards --to {provider['options']['path']} " in page
    [source] = yaml.safe_load((provisioning / "datasources" / "kafscale.yaml").read_text())[
        "datasources"
    ]
    assert source["type"] == "prometheus"
