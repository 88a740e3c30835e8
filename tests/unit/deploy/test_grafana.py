"""The example configuration of Grafana."""

import yaml

from unit.deploy.chart import ROOT


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
