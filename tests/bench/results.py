"""Where the figures of benches are kept: one JSON file, by section and name.

A run of some benches leaves the figures of the others as they were.
"""

import json
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / ".bench" / "results.json"


def read(section: str) -> dict[str, Any]:
    """The figures of earlier runs by their names."""
    return dict(_all().get(section, {}))


def save(section: str, figures: dict[str, Any]) -> None:
    everything = _all()
    everything["python"] = platform.python_version()
    everything[section] = read(section) | figures
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(everything, indent=2) + "\n")


def _all() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}
