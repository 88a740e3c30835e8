"""Kafka clients of former years, built or downloaded once and kept in the user's cache.

    OLD_CLIENTS["Java 0.9.0.1"].produce(address, topic, ["gzip"])
    values = OLD_CLIENTS["Java 0.9.0.1"].consume(address, topic, group, 50, ["gzip"])

A client sends 50 values, such as `gzip 7`, to the topic of each codec, `{topic}-{codec}`; as a
group member it reads a number of values from such topics, commits, and leaves. `missing` says what
this machine lacks.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from services.cache import cached_directory
from services.client_program import HOME

RUN_S_MAX: Final = 60
RECORDS: Final = 50
CODECS: Final = ("none", "gzip", "snappy", "lz4")
_JAVA_FLAGS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class OldClient(Protocol):
    """One client library in one version, possibly limited to the protocol of an older broker."""

    codecs: Sequence[str]
    can_consume: bool

    def missing(self) -> str | None: ...

    def fetch(self) -> object:
        """Download or build it, unless it is there."""

    def produce(self, address: str, topic: str, codecs: Sequence[str]) -> None: ...

    def consume(
        self, address: str, topic: str, group: str, count: int, codecs: Sequence[str]
    ) -> list[str]: ...


def _run(command: Sequence[str | Path], stdin: str = "", **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - the commands are our own.
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
        env=environment or None,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout


def _missing(*programs: str) -> str | None:
    return next((program for program in programs if not shutil.which(program)), None)


# --- Java -----------------------------------------------------------------------------------------

_PROJECT: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafscale</groupId><artifactId>old-clients-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""


class JavaClient:
    """Apache Kafka's own client."""

    codecs = CODECS

    def __init__(self, version: str, *, can_consume: bool = True) -> None:
        self.version = version
        self.can_consume = can_consume

    def missing(self) -> str | None:
        return _missing("java", "mvn")

    def fetch(self) -> Path:
        def download(directory: Path) -> None:
            project = directory / "pom.xml"
            project.write_text(_PROJECT.format(version=self.version))
            goal = ("dependency:copy-dependencies", f"-DoutputDirectory={directory}")
            subprocess.run(  # noqa: S603 - the arguments are our own.
                ["mvn", "--batch-mode", "--quiet", "-f", project, *goal],  # noqa: S607
                check=True,
                stdin=subprocess.DEVNULL,
            )

        return cached_directory(f"kafka-clients-{self.version}", download)

    def produce(self, address: str, topic: str, codecs: Sequence[str]) -> None:
        self._run("OldProducer", address, topic, *codecs)

    def consume(
        self, address: str, topic: str, group: str, count: int, codecs: Sequence[str]
    ) -> list[str]:
        return self._run("OldConsumer", address, topic, group, str(count), *codecs).splitlines()

    def transform(self, address: str, source: str, target: str, group: str, count: int) -> None:
        """Write the records of a topic to another one in transactions, of which half abort."""
        self._run("OldTransform", address, source, target, group, str(count))

    def _run(self, program: str, *arguments: str) -> str:
        source = HOME / "java" / f"{program}.java"
        return _run(["java", *_JAVA_FLAGS, "-cp", f"{self.fetch()}/*", source, *arguments])


# --- librdkafka -----------------------------------------------------------------------------------

_NODE_RDKAFKA: Final = "2.5.1"
"""The package that contains the source of librdkafka 0.11.5."""
_NODE_RDKAFKA_SHA256: Final = "9722ee1f1d7e28790ebdb6741b916214a99c23c521de144d2b2d1cb10ba6c375"
_PROGRAMS: Final = ("rdkafka_example", "rdkafka_consumer_example")


class LibrdkafkaClient:
    """librdkafka 0.11.5, as its example programs."""

    codecs = CODECS
    can_consume = True

    def __init__(self, broker_version: str | None = None) -> None:
        """With a broker version it does not ask the broker which API versions it has."""
        self._settings = (
            []
            if broker_version is None
            else [
                "-X",
                "api.version.request=false",
                "-X",
                f"broker.version.fallback={broker_version}",
            ]
        )

    def missing(self) -> str | None:
        return _missing("npm", "gcc", "g++", "make")

    def fetch(self) -> Path:
        return cached_directory("librdkafka-0.11.5", _build_librdkafka)

    def produce(self, address: str, topic: str, codecs: Sequence[str]) -> None:
        for codec in codecs:
            lines = "".join(f"{codec} {number}\n" for number in range(RECORDS))
            target = ("-b", address, "-t", f"{topic}-{codec}", "-p", "0")
            program = self.fetch() / "rdkafka_example"
            linger = ("-X", "queue.buffering.max.ms=100")
            _run([program, "-P", *target, "-z", codec, *linger, *self._settings], lines)

    def consume(
        self, address: str, topic: str, group: str, count: int, codecs: Sequence[str]
    ) -> list[str]:
        """It reads to the end of all partitions.

        Sometimes it closes its connection without LeaveGroup; the next one waits for its session.
        """
        program = self.fetch() / "rdkafka_consumer_example"
        member = ("-X", "topic.auto.offset.reset=earliest", "-X", "session.timeout.ms=6000")
        options = ("-q", "-A", "-e", *member, *self._settings)
        topics = [f"{topic}-{codec}" for codec in codecs]
        lines = _run([program, "-b", address, "-g", group, *options, *topics]).splitlines()
        values = [line for line in lines if not line.startswith("Key: ")]
        assert len(values) == count, values
        return values


def _build_librdkafka(directory: Path) -> None:
    package = f"node-rdkafka@{_NODE_RDKAFKA}"
    subprocess.run(["npm", "pack", "--silent", package], cwd=directory, check=True)  # noqa: S603, S607
    archive = directory / f"node-rdkafka-{_NODE_RDKAFKA}.tgz"
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == _NODE_RDKAFKA_SHA256
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    source = directory / "package" / "deps" / "librdkafka"
    without = ("--disable-ssl", "--disable-sasl", "--disable-lz4")  # It has an LZ4 of its own.
    for command in (
        ["./configure", *without],
        ["make", "-C", "src", "librdkafka.a"],
        ["make", "-C", "examples", *_PROGRAMS],
    ):
        subprocess.run(command, cwd=source, check=True, capture_output=True)  # noqa: S603
    for name in _PROGRAMS:
        shutil.copy(source / "examples" / name, directory)
    shutil.rmtree(directory / "package")


# --- kafka-python ---------------------------------------------------------------------------------


class KafkaPythonClient:
    """kafka-python, as a client of a broker of some version."""

    can_consume = True

    def __init__(self, version: str, broker_version: str, codecs: Sequence[str]) -> None:
        self.version = version
        self.codecs = codecs
        self._broker_version = broker_version

    def missing(self) -> str | None:
        return None

    def fetch(self) -> Path:
        # The oldest one imports `six`; LZ4 of magic 0 needs `xxhash`.
        packages = (f"kafka-python=={self.version}", "six==1.17.0", "xxhash==3.6.0")

        def install(directory: Path) -> None:
            options = ("--quiet", "--no-deps", "--target", str(directory))
            subprocess.run(  # noqa: S603 - the arguments are our own.
                [sys.executable, "-m", "pip", "install", *options, *packages], check=True
            )
            for module in (directory / "kafka").rglob("*.py"):
                # The oldest one uses these names, which are keywords since Python 3.7.
                module.write_text(re.sub(r"\b(async|await)\b", r"\1_", module.read_text()))

        return cached_directory(f"kafka-python-{self.version}", install)

    def produce(self, address: str, topic: str, codecs: Sequence[str]) -> None:
        self._run("produce", address, topic, str(RECORDS), *codecs)

    def consume(
        self, address: str, topic: str, group: str, count: int, codecs: Sequence[str]
    ) -> list[str]:
        return self._run(f"consume={group}", address, topic, str(count), *codecs).splitlines()

    def _run(self, command: str, *arguments: str) -> str:
        program = HOME / "python" / "old_kafka_python.py"
        return _run(
            [sys.executable, program, self._broker_version, command, *arguments],
            PYTHONPATH=str(self.fetch()),
        )


OLD_CLIENTS: Final[dict[str, OldClient]] = {
    # The consumer of 0.8.2 is not implemented.
    "Java 0.8.2.2": JavaClient("0.8.2.2", can_consume=False),
    "Java 0.9.0.1": JavaClient("0.9.0.1"),
    "Java 0.10.2.2": JavaClient("0.10.2.2"),
    "Java 0.11.0.3": JavaClient("0.11.0.3"),
    "Java 1.1.1": JavaClient("1.1.1"),
    "Java 2.8.2": JavaClient("2.8.2"),
    "librdkafka 0.11.5": LibrdkafkaClient(),
    "librdkafka 0.11.5 for 0.9": LibrdkafkaClient("0.9.0.1"),
    "kafka-python 1.0.2 for 0.9": KafkaPythonClient("1.0.2", "0.9", ("none", "gzip", "snappy")),
    "kafka-python 1.4.7 for 0.8.2": KafkaPythonClient("1.4.7", "0.8.2", CODECS),
    "kafka-python 1.4.7 for 0.9": KafkaPythonClient("1.4.7", "0.9", CODECS),
    "kafka-python 1.4.7 for 0.10": KafkaPythonClient("1.4.7", "0.10", CODECS),
}


def fetch() -> bool:
    """Fetch those that this machine can run; whether that is all of them."""
    available = [client for client in OLD_CLIENTS.values() if not client.missing()]
    for client in available:
        client.fetch()
    return len(available) == len(OLD_CLIENTS)
