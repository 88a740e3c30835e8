"""Apache Flink: the program `FlinkTransform`, which runs a job and its whole cluster in one JVM.

    process = subprocess.Popen(command("127.0.0.1:9092", directory, "POOLING"))

Maven downloads the jars, and the program is compiled, once. Flink looks its classes up by name, so
Java cannot compile it when it starts. `FLINK` and `CONNECTOR` are the newest that belong together.
"""

import hashlib
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from services.cache import cached_directory
from services.client_program import HOME
from services.java_programs import FLAGS, download

FLINK: Final = "2.2.1"
CONNECTOR: Final = "5.0.0-2.2"
ARTIFACTS: Final = (
    ("org.slf4j", "slf4j-simple", "1.7.36"),
    ("org.apache.flink", "flink-streaming-java", FLINK),
    ("org.apache.flink", "flink-clients", FLINK),
    ("org.apache.flink", "flink-connector-base", FLINK),
    ("org.apache.flink", "flink-connector-kafka", CONNECTOR),
)
_SOURCE: Final = HOME / "java" / "FlinkTransform.java"
_OPENED: Final = ("java.lang", "java.util", "java.util.concurrent.atomic")
"""Packages of Java that Flink reads by reflection."""
_FLAGS: Final = (
    *FLAGS,
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # It logs all settings of every client; a transaction has a producer of its own.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka=warn",
)


def command(bootstrap: str, checkpoints: Path, naming: str) -> list[str]:
    """The command line; `naming` is a `TransactionNamingStrategy` of Flink's."""
    path = f"{classes()}:{jars()}/*"
    return ["java", *_FLAGS, "-cp", path, _SOURCE.stem, bootstrap, str(checkpoints), naming]


def jars() -> Path:
    """The directory of the jars, downloaded on first use."""
    return cached_directory(f"flink-{FLINK}", partial(download, ARTIFACTS))


def classes() -> Path:
    """The directory of the compiled program."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    return cached_directory(f"flink-{FLINK}-program-{digest}", _compile)


def _compile(directory: Path) -> None:
    options = ("-cp", f"{jars()}/*", "-d", directory)
    subprocess.run(["javac", *options, _SOURCE], check=True)  # noqa: S603, S607 - our own.
