"""A real Prometheus, as Debian packs it: scraping, evaluating, and judging rules.

    with prometheus(tmp_path, [Target("brokers", broker.metrics_port)]) as server:
        server.query("up")

Where it cannot be fetched, `is_available` says so.
"""

import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from services import debian
from services.process import free_port, running
from services.waiting import wait_until

PACKAGES = ("prometheus",)
HOST = "127.0.0.1"
RESPONSE_S_MAX = 10
RUN_S_MAX = 60


@dataclass(frozen=True)
class Target:
    """A scrape target: a local port, and the labels of its series."""

    job: str
    port: int
    labels: Mapping[str, str] = field(default_factory=dict)
    honor_labels: bool = False


class PrometheusError(AssertionError):
    """Prometheus rejected an expression; has its message."""


class PrometheusServer:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._root = f"http://{HOST}:{port}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._root}/-/ready", timeout=RESPONSE_S_MAX):  # noqa: S310
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The current result of an expression: series with labels and values."""
        return self._request("query", query=expression)["result"]

    def series(self, selector: str) -> list[dict[str, str]]:
        """The labels of all matching series."""
        return self._request("series", **{"match[]": selector})

    def targets(self) -> list[dict[str, Any]]:
        """The scrape targets, with the result of their last scrape."""
        return self._request("targets")["activeTargets"]

    def _request(self, path: str, **parameters: str) -> Any:
        url = f"{self._root}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=RESPONSE_S_MAX) as response:  # noqa: S310
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise PrometheusError(error.read().decode()) from None


def is_available() -> bool:
    return debian.is_available("prometheus", PACKAGES)


@contextmanager
def prometheus(directory: Path, targets: Sequence[Target]) -> Iterator[PrometheusServer]:
    """One that scrapes the targets every second, as long as the block lasts."""
    directory.mkdir(parents=True, exist_ok=True)
    configuration = directory / "prometheus.yml"
    configuration.write_text(yaml.safe_dump(_configuration(targets)))
    port = free_port()
    command = [
        _program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={HOST}:{port}",
    ]
    log = directory / "prometheus.log"
    with running(command, port=port, log=log, environment=os.environ):
        server = PrometheusServer(port)
        # It listens before it has read what it has stored, and answers nothing until then.
        wait_until(server.is_ready, "Prometheus to be ready", seen=log.read_text)
        yield server


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Prometheus' own judge of rules and configurations, run to its end, be it good or bad."""
    return subprocess.run(  # noqa: S603 - the arguments are a test's own.
        [_program("promtool"), *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


def _program(name: str) -> Path:
    return debian.unpacked("prometheus", PACKAGES) / "usr" / "bin" / name


def _configuration(targets: Sequence[Target]) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": target.job,
                "honor_labels": target.honor_labels,
                "static_configs": [
                    {"targets": [f"{HOST}:{target.port}"], "labels": dict(target.labels)}
                ],
            }
            for target in targets
        ],
    }
