"""What is committed for Prometheus and Grafana is what the code says, and nothing else."""

import pytest
import yaml

from kafscale.monitoring.files import CHART, deployed_files
from unit.deploy.chart import ROOT

DEPLOYED = deployed_files()


@pytest.mark.parametrize("name", DEPLOYED)
def test_a_committed_file_is_what_the_code_says(name):
    assert (ROOT / "deploy" / name).read_text() == DEPLOYED[name], "run `make docs`"


def test_no_dashboard_is_left_of_an_older_time():
    there = {path.name for path in (ROOT / "deploy" / CHART / "dashboards").iterdir()}
    assert {f"{CHART}/dashboards/{name}" for name in there} <= DEPLOYED.keys()


def test_what_grafana_is_given_is_where_the_page_writes_it():
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
