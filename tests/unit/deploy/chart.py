"""The files of the Helm chart."""

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "kafscale"
CONFIG = ROOT / "config"


def read(name: str) -> Any:
    """Return a YAML file of the chart."""
    return yaml.safe_load((CHART / name).read_text())


def dashboards() -> dict[str, Any]:
    """Return the Grafana dashboards by file name."""
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    return {file.stem: json.loads(file.read_text()) for file in files}
