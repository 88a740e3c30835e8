"""All generated files and their texts."""

from generators import typescript
from generators.crds.rendering import render_definitions, render_schemas
from generators.monitoring.alerts import GROUPS
from generators.monitoring.alerts.rule import render_rules
from generators.monitoring.dashboards import DASHBOARDS
from generators.monitoring.dashboards.rendering import render_dashboard
from generators.pages import configuration, crds, metrics, monitoring, permissions, protocol


def generated_files() -> dict[str, str]:
    """The text of every generated file, by its path in the repository.

    Files that a command prints are also in the package: `kafscale monitoring`, `operator crds`.
    """
    definitions = render_definitions()
    alerts = {"alerts.yaml": render_rules(GROUPS)}
    dashboards = {f"{each.name}.json": render_dashboard(each) for each in DASHBOARDS}
    return {
        "docs/configuration.md": configuration.page(),
        "docs/crds.md": crds.page(),
        "docs/metrics.md": metrics.page(),
        "docs/monitoring.md": monitoring.page(),
        "docs/permissions.md": permissions.page(),
        "docs/protocol.md": protocol.page(),
        "web/src/api/contract.ts": typescript.render(),
        **_in_directory("api/v1alpha1", render_schemas()),
        **_in_directory("config/crd/bases", definitions),
        **_in_directory("deploy/helm/kafscale/crds", definitions),
        **_in_directory("src/kafscale/operator/crds", definitions),
        **_in_directory("deploy/helm/kafscale/files", alerts),
        **_in_directory("src/kafscale/monitoring", alerts),
        **_in_directory("deploy/helm/kafscale/files/dashboards", dashboards),
        **_in_directory("src/kafscale/monitoring/dashboards", dashboards),
    }


def _in_directory(directory: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{directory}/{name}": text for name, text in files.items()}
