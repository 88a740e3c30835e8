"""Kafka's command line tools; Maven downloads their jars.

    run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, "--list")

Starting a JVM takes a second or two, so tests call few tools. `is_available` is false without Java
or Maven.
"""

import os
import shutil
import subprocess
from pathlib import Path

from services.cache import cache, cached_directory

KAFKA = "4.1.1"
RUN_S_MAX = 90
_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
)
_PROJECT = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafscale</groupId><artifactId>kafka-tools-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{KAFKA}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{KAFKA}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""


def is_available() -> bool:
    return shutil.which("java") is not None and shutil.which("mvn") is not None


def run(tool: str, *arguments: str, stdin: str = "") -> str:
    """Run a tool, assert that it succeeds, and return its output.

    The first one writes the classes that it loaded to a file.
    """
    line = command(tool, *arguments)
    unfinished = _archive().with_suffix(f".{os.getpid()}")
    if not _archive().exists():
        line.insert(1, f"-XX:ArchiveClassesAtExit={unfinished}")
    done = subprocess.run(  # noqa: S603 - the arguments are a test's own.
        line, input=stdin, capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    if unfinished.exists():
        unfinished.rename(_archive())
    assert done.returncode == 0, f"{tool} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def command(tool: str, *arguments: str) -> list[str]:
    """The command line of a tool."""
    archive = [f"-XX:SharedArchiveFile={_archive()}"] if _archive().exists() else []
    return ["java", *_FLAGS, *archive, "-cp", f"{jars()}/*", tool, *arguments]


def _archive() -> Path:
    """The file of loaded classes; with it, a tool starts in half the CPU time."""
    return cache() / f"kafka-classes-{KAFKA}.jsa"


def jars() -> Path:
    """The directory of the jars of Kafka and its tools, downloaded on first use."""
    return cached_directory(f"kafka-tools-{KAFKA}", _fetch)


def _fetch(directory: Path) -> None:
    project = directory / "pom.xml"
    project.write_text(_PROJECT)
    subprocess.run(  # noqa: S603 - the arguments are our own.
        [  # noqa: S607
            "mvn",
            "--batch-mode",
            "--quiet",
            "-f",
            project,
            "dependency:copy-dependencies",
            f"-DoutputDirectory={directory}",
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
