"""Alerts as Prometheus reads them: one file of rules.

The law: the same alerts give the same text, so that what is committed can be compared.
"""

from typing import Any, Final

import yaml

from kafscale.monitoring.alerts.rule import RUNBOOK, Alert, Group

_HEAD: Final = """\
# Written by `make docs` from the alerts in the code; edit those instead.
#
# When somebody should know. Severity `critical` wakes people up: clients are, or soon will be, without service.
# `warning` can wait for the morning. What to do about each is in the runbook, under its name.
#
# Series of brokers have the labels `namespace`, `cluster` and `pod`, as the ServiceMonitors have them that the operator
# makes; those of the operator about clusters have `namespace` and `cluster` by themselves.
"""  # noqa: E501 - a comment in a file of its own.

_WIDE: Final = 10_000
"""No line is broken: Helm and people look for whole ones."""


def text(groups: tuple[Group, ...], runbook: str = RUNBOOK) -> str:
    """The file of rules; `runbook` is the address of that page."""
    rules = {"groups": [_group(group, runbook) for group in groups]}
    return _HEAD + yaml.safe_dump(rules, sort_keys=False, allow_unicode=True, width=_WIDE)


def _group(group: Group, runbook: str) -> dict[str, Any]:
    return {"name": group.name, "rules": [_rule(alert, runbook) for alert in group.alerts]}


def _rule(alert: Alert, runbook: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": alert.expression}
    if alert.lasts:
        rule["for"] = alert.lasts
    rule["labels"] = {"severity": alert.severity.value}
    rule["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": alert.runbook.replace(RUNBOOK, runbook),
    }
    return rule
