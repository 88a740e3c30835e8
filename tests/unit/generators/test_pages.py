"""The generated pages are complete; test_files compares them with the committed ones."""

from generators.crds.definitions import RESOURCES, schema
from generators.pages import configuration, crds, metrics, permissions, protocol
from kafscale.broker.security.permissions import PERMISSIONS
from kafscale.config import SETTINGS, VARIABLES
from kafscale.protocol.apis import APIS
from unit.deploy.promql_checks import METRICS
from unit.generators.crds.structural import parts


def test_configuration_has_all_settings_defaults_and_variables():
    page = configuration.page()
    for setting in SETTINGS:
        _, _, section = page.partition(f"### `{setting.path}`\n")
        section, _, _ = section.partition("\n#")
        shown = setting.type.show(setting.default)
        assert f"* default: {f'`{shown}`' if shown else 'empty'}\n" in section
        assert f"* takes: {setting.type.takes} * variable" in " ".join(section.split())
        assert ("* secret: " in section) == setting.secret
        assert setting.description in " ".join(section.split())
    for variable in VARIABLES:
        assert f"\n| `{variable}` | " in page


def test_metrics_has_every_metric_with_its_labels():
    page = metrics.page()
    for declared in METRICS:
        labels = ", ".join(f"`{label}`" for label in declared.labels)
        row = f"| `{declared.name}` | {declared.type} | {labels} | {declared.meaning} |\n"
        assert row in page


def test_protocol_has_every_api():
    page = protocol.page()
    for api in APIS:
        assert f"| {api.key} | {api.name} | " in page


def test_permissions_has_every_row():
    text = permissions.page()
    for api, requirements in PERMISSIONS.items():
        lines = [line for line in text.splitlines() if line.startswith(f"| {api} |")]
        assert len(lines) == max(len(requirements), 1)
        assert all(
            requirement.code.name in text or requirement.is_filtered for requirement in requirements
        )


def test_crds_has_every_field():
    text = crds.page()
    for resource in RESOURCES:
        for path, part in parts(schema(resource)):
            name = path.rpartition(".")[2]
            if path.startswith(("spec.", "status.")) and not name.endswith(("[]", "{}")):
                assert f"| `{name}` |" in text, path
                assert part["description"] in text, path


def test_crds_has_every_rule():
    for resource in RESOURCES:
        for rules in resource.rules.values():
            for rule in rules:
                assert f"{rule.message}." in " ".join(crds.page().split())


def test_crds_has_types_and_defaults():
    lines = crds.page().splitlines()
    for row in (
        "| `replicas` | integer, 1 to 1000 | `3` |",
        "| `partitions` | integer, 1 to 1024 | required |",
        "| `minReplicas` | integer, 1 to 1000 | unset |",
        "| `endpoints` | list of strings | empty |",
        "| `config` | map of strings | empty |",
        '| `monitoringNamespaceLabels` | map of strings | `{"kubernetes.io/metadata.name":',
        "| `deletionPolicy` | `Delete`, `Retain` | `Delete` |",
        "| `lastTransitionTime` | time |",
    ):
        assert any(line.startswith(row) for line in lines), row
