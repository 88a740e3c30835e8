"""Programs of the Kubernetes test cluster, built from pinned sources and cached.

Building them takes minutes, so `make test-k8s` does it before the tests: see `services.programs`.
Without Go nothing is built, and `missing` says so. Helm is built in the module of Kubernetes,
because it uses many of the same packages: `go.mod` has the version of Helm that was made for the
same Kubernetes.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from services.cache import cached_directory as cached
from services.go_program import ENVIRONMENT, FLAGS

SOURCE = Path(__file__).with_name("go")
KUBERNETES = "k8s.io/kubernetes"
HELM = "helm.sh/helm/v3"
PROGRESS_S = 30


def missing() -> str | None:
    """Why programs cannot be built, as a sentence; None if they can."""
    return None if shutil.which("go") else "Go is not installed, which builds Kubernetes."


def kubernetes_version() -> str:
    return _version(KUBERNETES)


def helm_version() -> str:
    return _version(HELM)


def kube() -> Path:
    """The API server and the controllers, as one program."""
    return _programs() / "kube"


def helm() -> Path:
    return _programs() / "helm"


def _version(module: str) -> str:
    [version] = re.findall(rf"\t{re.escape(module)} v(\S+)", (SOURCE / "go.mod").read_text())
    return version


def _programs() -> Path:
    digest = hashlib.sha256(" ".join([*FLAGS, *_link_flags()]).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((SOURCE / name).read_bytes())
    return cached(f"kube-{kubernetes_version()}-{digest.hexdigest()[:16]}", _build)


def _link_flags() -> list[str]:
    """Without symbols, but with the version, which is not in the sources and which charts check."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    version_flags = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return ["-s", "-w"] + [
        f"-X=k8s.io/component-base/version.{k}={v}" for k, v in version_flags.items()
    ]


def _build(directory: Path) -> None:
    _print(f"building Kubernetes {kubernetes_version()} and Helm, once on this machine")
    command: list[str | Path] = [
        "go",
        "build",
        "-mod=readonly",
        *FLAGS,
        f"-ldflags={' '.join(_link_flags())}",
        "-o",
        directory,
        ".",
        f"{HELM}/cmd/helm",
    ]
    started = time.monotonic()
    with subprocess.Popen(  # noqa: S603 - the command is our own.
        command, cwd=SOURCE, env={**os.environ, **ENVIRONMENT}
    ) as building:
        while building.poll() is None:
            try:
                building.wait(PROGRESS_S)
            except subprocess.TimeoutExpired:
                _print(f"  still building Kubernetes after {time.monotonic() - started:.0f} s")
    if building.returncode:
        raise subprocess.CalledProcessError(building.returncode, command)


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - it takes minutes.
