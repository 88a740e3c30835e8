"""Programs that the world of Kubernetes is made of, built from pinned sources and kept in a cache.

    python -m services.kubernetes.binaries

builds what is missing, and says how it gets on: from nothing, that takes ten minutes. Where there
is no Go, nothing is built, and `missing` says so.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from services import etcd_programs, s3_server
from services.cache import kept
from services.go_program import go_program

SOURCE = Path(__file__).with_name("go")
HELM = ("helm.sh/helm/v3/cmd/helm", "v3.19.5")
PROGRESS_S = 30


def missing() -> str | None:
    """What is not here to build programs with, as a sentence."""
    return None if shutil.which("go") else "There is no Go here to build Kubernetes with."


def kubernetes_version() -> str:
    [version] = re.findall(r"k8s\.io/kubernetes v(\S+)", (SOURCE / "go.mod").read_text())
    return version


def kube() -> Path:
    """The API server and the controllers, as one program."""
    digest = hashlib.sha256(" ".join(_link_flags()).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((SOURCE / name).read_bytes())
    return kept(f"kube-{kubernetes_version()}-{digest.hexdigest()[:16]}", _build_kube) / "kube"


def helm() -> Path:
    program = go_program(*HELM)
    assert program is not None, "ask missing first"
    return program


def _link_flags() -> list[str]:
    """Without symbols; and with the version, which is not in the sources, and charts ask for."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    told = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return ["-s", "-w"] + [f"-X=k8s.io/component-base/version.{k}={v}" for k, v in told.items()]


def _build_kube(room: Path) -> None:
    _say(f"building Kubernetes {kubernetes_version()}, once on this machine")
    command: list[str | Path] = [
        "go",
        "build",
        "-mod=readonly",
        "-trimpath",
        f"-ldflags={' '.join(_link_flags())}",
        "-o",
        room / "kube",
        ".",
    ]
    began = time.monotonic()
    with subprocess.Popen(  # noqa: S603 - the command is our own.
        command, cwd=SOURCE, env={**os.environ, "CGO_ENABLED": "0"}
    ) as building:
        while building.poll() is None:
            try:
                building.wait(PROGRESS_S)
            except subprocess.TimeoutExpired:
                _say(f"  still building Kubernetes after {time.monotonic() - began:.0f} s")
    if building.returncode:
        raise subprocess.CalledProcessError(building.returncode, command)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - somebody waits for minutes.


def main() -> None:
    """Build all that is not there yet."""
    if reason := missing():
        _say(reason)
        return
    _say(f"Kubernetes {kubernetes_version()}: {kube()}")
    _say(f"Helm {HELM[1]}: {helm()}")
    _say(f"etcd {etcd_programs.version()}: {etcd_programs.directory()}")
    _say(f"S3 server: {s3_server.is_available()}")


if __name__ == "__main__":
    main()
