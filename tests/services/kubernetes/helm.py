"""Runs Helm against one cluster.

    helm = Helm(plane.kubeconfig, tmp_path)
    helm.install("kafscale", chart, namespace, {"operator": {"replicas": 2}})

Its caches are in a directory of the test.
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
    """An error of Helm."""


class Helm:
    """Helm with the kubeconfig of a cluster."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        self._environment = {
            **os.environ,
            **dict.fromkeys(homes, str(directory)),
            "KUBECONFIG": str(kubeconfig),
        }

    def __call__(self, *arguments: str | Path, values: Mapping[str, Any] | None = None) -> str:
        """The output of a command; `values` are for commands with `--values`."""
        options = [] if values is None else ["--values", "-"]
        completed = subprocess.run(  # noqa: S603 - our own command.
            [binaries.helm(), *arguments, *options],
            env=self._environment,
            timeout=RUN_S_MAX,
            input=None if values is None else yaml.safe_dump(dict(values)),
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise HelmError(completed.stderr.strip())
        return completed.stdout

    def render(
        self,
        release: str,
        chart: Path,
        namespace: str,
        values: Mapping[str, Any] | None = None,
        *,
        api_versions: Sequence[str] = (),
    ) -> list[Manifest]:
        """All manifests of a chart, including CRDs; the cluster is not contacted.

        The chart sees the API versions of the pinned Kubernetes, and these.
        """
        api_options = [f"--api-versions={version}" for version in api_versions]
        rendered = self(
            "template",
            release,
            chart,
            "--namespace",
            namespace,
            "--include-crds",
            "--kube-version",
            binaries.kubernetes_version(),
            *api_options,
            values=values or {},
        )
        return [manifest for manifest in yaml.safe_load_all(rendered) if manifest]

    def install(
        self, release: str, chart: Path, namespace: str, values: Mapping[str, Any] | None = None
    ) -> None:
        """Install a chart, or upgrade to it."""
        self("upgrade", release, chart, "--install", "--namespace", namespace, values=values or {})

    def uninstall(self, release: str, namespace: str) -> None:
        self("uninstall", release, "--namespace", namespace)
