"""Renders dashboards as the JSON of Grafana.

Invariant: equal dashboards render to equal text, so that the committed files can be compared.
Panels are laid out from left to right and from top to bottom; only this module knows positions.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from generators.monitoring.dashboards.panels import (
    COLUMNS,
    Dashboard,
    Panel,
    PanelType,
    Query,
    Row,
    Variable,
)

SCHEMA: Final = 39
"""The schema version of Grafana 10.4; later versions migrate it."""
TAG: Final = "kafscale"
_PROMETHEUS: Final = {"type": "prometheus", "uid": "${datasource}"}
_DATASOURCE_VARIABLE: Final = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
}

Json = dict[str, Any]


def render_dashboard(dashboard: Dashboard) -> str:
    """Return the file of a dashboard."""
    return json.dumps(model(dashboard), indent=2, ensure_ascii=False) + "\n"


def model(dashboard: Dashboard) -> Json:
    """Return the JSON model of a dashboard."""
    return {
        "title": dashboard.title,
        "uid": dashboard.uid,
        "description": dashboard.description,
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [_dashboard_links()],
        "templating": {"list": [_DATASOURCE_VARIABLE, *map(_variable, dashboard.variables)]},
        "panels": list(_layout(dashboard)),
    }


def _dashboard_links() -> Json:
    """Return links to all Kafscale dashboards that keep variables and time range."""
    return {
        "type": "dashboards",
        "title": "Kafscale",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }


def _variable(variable: Variable) -> Json:
    rendered: Json = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _PROMETHEUS,
        "query": variable.values,
        "refresh": 2,
        "sort": 1,
    }
    if variable.is_multi:
        # `.*` also matches series without the label, as outside of Kubernetes.
        rendered |= {
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all", "selected": True},
        }
    return rendered


def _layout(dashboard: Dashboard) -> Iterator[Json]:
    number, top = 1, 0
    for row in dashboard.rows:
        yield _row(row, number, top)
        number, top = number + 1, top + 1
        left = height = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, height = 0, top + height, 0
            yield _panel(panel, number, {"h": panel.height, "w": panel.width, "x": left, "y": top})
            number, left, height = number + 1, left + panel.width, max(height, panel.height)
        top += height


def _row(row: Row, number: int, top: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
        "panels": [],
    }


def _panel(panel: Panel, number: int, grid_position: Json) -> Json:
    rendered: Json = {
        "id": number,
        "type": panel.type.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _PROMETHEUS,
        "gridPos": grid_position,
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "targets": [_target(query, index) for index, query in enumerate(panel.queries)],
    }
    if panel.type is PanelType.TIME_SERIES:
        rendered["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    elif panel.type is PanelType.STAT:
        has_legend = any(query.legend for query in panel.queries)
        rendered["options"] = {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "textMode": "value_and_name" if has_legend else "value",
        }
    if panel.linked_dashboard:
        rendered["links"] = [_link_to(panel.linked_dashboard)]
    return rendered


def _field(panel: Panel) -> Json:
    field: Json = {"unit": panel.unit.value}
    for name, bound in (("min", panel.minimum), ("max", panel.maximum)):
        if bound is not None:
            field[name] = bound
    if panel.decimals is not None:
        field["decimals"] = panel.decimals
    if panel.thresholds:
        steps: list[Json] = [{"color": panel.base_colour, "value": None}]
        steps += [{"color": each.colour, "value": each.value} for each in panel.thresholds]
        field["thresholds"] = {"mode": "absolute", "steps": steps}
        if panel.type is PanelType.TIME_SERIES:
            field["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    return field


def _target(query: Query, index: int) -> Json:
    return {
        "refId": chr(ord("A") + index),
        "datasource": _PROMETHEUS,
        "expr": query.expression,
        "legendFormat": query.legend,
    }


def _link_to(name: str) -> Json:
    variables = "${namespace:queryparam}&${cluster:queryparam}"
    return {
        "title": f"Details: {name.replace('-', ' ')}",
        "url": f"/d/kafscale-{name}?{variables}&${{__url_time_range}}",
    }
