"""Dashboards as Grafana reads them.

The law: the same dashboard gives the same text, byte by byte, so that what is committed can be
compared. Panels are laid out from left to right and from top to bottom, in rows as wide as
Grafana's; nobody else knows places.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from kafscale.monitoring.dashboards.panels import (
    COLUMNS,
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Variable,
)

SCHEMA: Final = 39
"""The version of Grafana's schema: Grafana 10.4 and later read it as it is."""
TAG: Final = "kafscale"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_DATASOURCE: Final = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
}

Json = dict[str, Any]


def text(dashboard: Dashboard) -> str:
    """The file of a dashboard."""
    return json.dumps(model(dashboard), indent=2, ensure_ascii=False) + "\n"


def model(dashboard: Dashboard) -> Json:
    """What Grafana calls the JSON model of a dashboard."""
    return {
        "title": dashboard.title,
        "uid": dashboard.uid,
        "description": dashboard.about,
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [_others()],
        "templating": {"list": [_DATASOURCE, *map(_variable, dashboard.variables)]},
        "panels": list(_placed(dashboard)),
    }


def _others() -> Json:
    """The way to all other dashboards, with what has been chosen and the time that is shown."""
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
    made: Json = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": variable.values,
        "refresh": 2,
        "sort": 1,
    }
    if variable.several:
        # Everything also matches series that lack the label, as on machines without Kubernetes.
        made |= {
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all", "selected": True},
        }
    return made


def _placed(dashboard: Dashboard) -> Iterator[Json]:
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


def _panel(panel: Panel, number: int, place: Json) -> Json:
    made: Json = {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "targets": [_target(query, place) for place, query in enumerate(panel.queries)],
    }
    if panel.kind is Kind.LINES:
        made["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    elif panel.kind is Kind.NUMBER:
        is_named = any(query.legend for query in panel.queries)
        made["options"] = {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "textMode": "value_and_name" if is_named else "value",
        }
    if panel.leads_to:
        made["links"] = [_way_to(panel.leads_to)]
    return made


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
        if panel.kind is Kind.LINES:
            field["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    return field


def _target(query: Query, place: int) -> Json:
    return {
        "refId": chr(ord("A") + place),
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
    }


def _way_to(name: str) -> Json:
    variables = "${namespace:queryparam}&${cluster:queryparam}"
    return {
        "title": f"More: {name.replace('-', ' ')}",
        "url": f"/d/kafscale-{name}?{variables}&${{__url_time_range}}",
    }
