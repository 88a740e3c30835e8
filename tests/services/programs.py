"""The foreign programs that tests run: downloads or builds those that this machine lacks.

    python -m services.programs [kubernetes]

Tests do the same on first use, but with time limits, and with empty caches it takes minutes. Go
programs are built one after the other, because the compiler uses all cores. The others are
downloaded meanwhile.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from services import (
    chromium,
    client_program,
    etcd_programs,
    flink,
    java,
    java_programs,
    kcat,
    old_clients,
    prometheus,
    s3_server,
)
from services import spark as spark_session
from services.kubernetes import binaries

Programs = Mapping[str, Callable[[], object]]

SERVERS: Programs = {
    f"etcd {etcd_programs.version()}": etcd_programs.directory,
    "S3 server": s3_server.is_available,
}
BUILT: Programs = {**SERVERS, "Kafka clients in Go": client_program.go_clients}
DOWNLOADED: Programs = {
    f"Kafka {java.KAFKA}": java.jars,
    f"Kafka Streams and Connect {java.KAFKA}": java_programs.jars,
    f"Flink {flink.FLINK}": flink.classes,
    "Chromium": chromium.is_available,
    "Kafka clients in JavaScript": client_program.node_clients,
    "Prometheus": prometheus.is_available,
    "kcat": kcat.is_available,
    "Kafka clients of former years": old_clients.fetch,
    "Spark's Kafka connector": spark_session.connector_jars,
}
KUBERNETES: Programs = {
    f"Kubernetes {binaries.kubernetes_version()}, Helm {binaries.helm_version()}": binaries.kube,
    **SERVERS,
}
NEEDED_SECONDS_MIN = 0.5
"""A program that was found in less time was there already, and is not reported."""


def main(name: str = "") -> None:
    built, downloaded = (KUBERNETES, {}) if name == "kubernetes" else (BUILT, DOWNLOADED)
    if shutil.which("go") is None:
        _print("Go is not installed: tests that need programs in Go are skipped")
        built = {}
    with ThreadPoolExecutor(2) as lanes:
        for done in [lanes.submit(_fetch_all, each) for each in (built, downloaded)]:
            done.result()


def _fetch_all(programs: Programs) -> None:
    for name, fetch in programs.items():
        started = time.monotonic()
        try:
            is_there = fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            # Tests that need it fail or are skipped, and say more.
            _print(f"{name} is not available: {error}")
            continue
        seconds = time.monotonic() - started
        if not is_there:
            _print(f"{name} is not available: tests that need it are skipped")
        elif seconds >= NEEDED_SECONDS_MIN:
            _print(f"{name}: ready after {seconds:.0f} s")


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - it takes minutes.


if __name__ == "__main__":
    main(*sys.argv[1:])
