"""Where the chart is, and what is in it."""

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "kafscale"
CONFIG = ROOT / "config"


def read(name: str) -> Any:
    """A file of the chart."""
    return yaml.safe_load((CHART / name).read_text())


def dashboards() -> dict[str, Any]:
    """Those of Grafana, by the names of their files."""
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    return {file.stem: json.loads(file.read_text()) for file in files}
