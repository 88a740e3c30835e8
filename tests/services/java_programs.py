"""Java programs of tests that use libraries around Kafka: Streams, Connect and MirrorMaker.

    process = subprocess.Popen(command("WordCount", "bootstrap=..."))

A program is one source file in `tests/e2e/clients/java`, which Java compiles when it starts. Maven
downloads the jars once.
"""

import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from services.cache import cached_directory
from services.client_program import HOME
from services.java import KAFKA

FLAGS: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ARTIFACTS: Final = (
    ("org.slf4j", "slf4j-simple", "1.7.36"),
    *(
        ("org.apache.kafka", artifact, KAFKA)
        for artifact in ("kafka-streams", "connect-runtime", "connect-mirror", "connect-file")
    ),
)
_DEPENDENCY: Final = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
    </dependency>"""
_PROJECT: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafscale</groupId><artifactId>programs-for-tests</artifactId><version>1</version>
  <dependencies>{}
  </dependencies>
</project>
"""


def jars() -> Path:
    """The directory of the jars, downloaded on first use."""
    return cached_directory(f"kafka-programs-{KAFKA}", partial(download, ARTIFACTS))


def command(program: str, *arguments: str) -> list[str]:
    """The command line of a program of ours."""
    return _java(str(HOME / "java" / f"{program}.java"), *arguments)


def class_command(name: str, *arguments: str) -> list[str]:
    """The command line of a class in the jars."""
    return _java(name, *arguments)


def _java(*arguments: str) -> list[str]:
    return ["java", *FLAGS, "-cp", f"{jars()}/*", *arguments]


def download(artifacts: Iterable[tuple[str, str, str]], directory: Path) -> None:
    """Download jars, and those that they need; an artifact is its group, name and version."""
    project = directory / "pom.xml"
    project.write_text(_PROJECT.format("".join(_DEPENDENCY.format(*each) for each in artifacts)))
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={directory}")
    subprocess.run(  # noqa: S603 - the arguments are our own.
        ["mvn", "--batch-mode", "--quiet", "-f", project, *goal],  # noqa: S607
        check=True,
        stdin=subprocess.DEVNULL,
    )
