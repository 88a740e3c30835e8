"""Helm, run for one cluster.

    helm = Helm(plane.kubeconfig, tmp_path)
    helm.install("kafscale", chart, namespace, {"operator": {"replicas": 2}})

What it keeps for itself is in a directory of the test.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from services.kubernetes import binaries
from services.kubernetes.kube_client import Manifest

RUN_S_MAX = 120


class HelmError(Exception):
    """What Helm complains about."""


class Helm:
    """One that knows how to get to a cluster."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        self._environment = {
            **os.environ,
            **dict.fromkeys(homes, str(directory)),
            "KUBECONFIG": str(kubeconfig),
        }

    def __call__(self, *arguments: str | Path, values: Mapping[str, Any] | None = None) -> str:
        """What a command prints; `values` are for those that take `--values`."""
        given = [] if values is None else ["--values", "-"]
        done = subprocess.run(  # noqa: S603 - our own command.
            [binaries.helm(), *arguments, *given],
            env=self._environment,
            timeout=RUN_S_MAX,
            input=None if values is None else yaml.safe_dump(dict(values)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise HelmError(done.stderr.strip())
        return done.stdout

    def render(
        self,
        release: str,
        chart: Path,
        namespace: str,
        values: Mapping[str, Any] | None = None,
        *,
        api_versions: Sequence[str] = (),
    ) -> list[Manifest]:
        """All manifests of a chart, CRDs included; the cluster is not asked.

        To the chart it has what every cluster of this version has, and these versions of APIs.
        """
        known = [f"--api-versions={version}" for version in api_versions]
        written = self(
            "template",
            release,
            chart,
            "--namespace",
            namespace,
            "--include-crds",
            "--kube-version",
            binaries.kubernetes_version(),
            *known,
            values=values or {},
        )
        return [manifest for manifest in yaml.safe_load_all(written) if manifest]

    def install(
        self, release: str, chart: Path, namespace: str, values: Mapping[str, Any] | None = None
    ) -> None:
        """Install a chart, or upgrade to it."""
        self("upgrade", release, chart, "--install", "--namespace", namespace, values=values or {})

    def uninstall(self, release: str, namespace: str) -> None:
        self("uninstall", release, "--namespace", namespace)
