"""Runs Kafka's `kafka-producer-perf-test`, at full speed or at a given rate."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.comparison import Figures
from services import java

# As Kafka's scripts set them for their tools.
TOOL_FLAGS = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_REPORT = re.compile(
    r"(?P<count>\d+) records sent, (?P<rate>[\d.]+) records/sec .*?"
    r"(?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th"
)
RECORD_BYTES = 1024
RUN_S_MAX = 240


@dataclass(frozen=True)
class Batching:
    """The batching of the producer; tables show the name."""

    name: str
    properties: tuple[str, ...]


BY_DEFAULT = Batching("batches of 16 KiB", ())
LARGE = Batching("batches of 256 KiB", ("batch.size=262144", "linger.ms=10"))


@dataclass(frozen=True)
class ProducerReport:
    records_per_second: float
    latencies_ms: Figures
    """The percentiles of the latency, by the names of columns."""

    @property
    def megabytes_per_second(self) -> float:
        return self.records_per_second * RECORD_BYTES / 1e6


def produce(
    address: str,
    topic: str,
    record_count: int,
    *,
    batching: Batching = BY_DEFAULT,
    records_per_second: int = -1,
    record_bytes: int = RECORD_BYTES,
    config: Path | None = None,
    transaction_ms: int | None = None,
) -> ProducerReport:
    """Produce records with acks=all; a file may have credentials. Waits for the last response.

    With `transaction_ms`, the producer commits a transaction each time that this much has passed.
    """
    done = subprocess.run(  # noqa: S603 - the command is a bench's own.
        [  # noqa: S607
            "java",
            *TOOL_FLAGS,
            "-cp",
            f"{java.jars()}/*",
            "org.apache.kafka.tools.ProducerPerformance",
            "--topic",
            topic,
            "--num-records",
            str(record_count),
            "--record-size",
            str(record_bytes),
            "--throughput",
            str(records_per_second),
            *(("--producer.config", str(config)) if config else ()),
            *(("--transaction-duration-ms", str(transaction_ms)) if transaction_ms else ()),
            "--producer-props",
            f"bootstrap.servers={address}",
            "acks=all",
            *batching.properties,
        ],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    reports = list(_REPORT.finditer(done.stdout))
    assert done.returncode == 0, done.stdout + done.stderr
    assert reports, done.stdout + done.stderr
    final = reports[-1]
    assert int(final["count"]) == record_count, done.stdout + done.stderr
    latencies_ms = {f"{name} ms": float(final[name]) for name in ("p50", "p95", "p99")}
    return ProducerReport(float(final["rate"]), latencies_ms)
