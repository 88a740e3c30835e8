"""Java programs of tests that use libraries around Kafka: Streams, Connect and MirrorMaker.

    process = subprocess.Popen(command("WordCount", "bootstrap=..."))

A program is one source file in `tests/e2e/clients/java`, which Java compiles when it starts. Maven
downloads the jars once.
"""

import subprocess
from pathlib import Path
from typing import Final

from services.cache import cached_directory
from services.client_program import HOME
from services.java import KAFKA

FLAGS: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ARTIFACTS: Final = ("kafka-streams", "connect-runtime", "connect-mirror", "connect-file")
_DEPENDENCY: Final = f"""
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>{{artifact}}</artifactId>
      <version>{KAFKA}</version>
    </dependency>"""
_PROJECT: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafscale</groupId><artifactId>programs-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>{"".join(_DEPENDENCY.format(artifact=each) for each in ARTIFACTS)}
  </dependencies>
</project>
"""


def jars() -> Path:
    """The directory of the jars, downloaded on first use."""
    return cached_directory(f"kafka-programs-{KAFKA}", _fetch)


def command(program: str, *arguments: str) -> list[str]:
    """The command line of a program of ours."""
    return _java(str(HOME / "java" / f"{program}.java"), *arguments)


def class_command(name: str, *arguments: str) -> list[str]:
    """The command line of a class in the jars."""
    return _java(name, *arguments)


def _java(*arguments: str) -> list[str]:
    return ["java", *FLAGS, "-cp", f"{jars()}/*", *arguments]


def _fetch(directory: Path) -> None:
    project = directory / "pom.xml"
    project.write_text(_PROJECT)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={directory}")
    subprocess.run(  # noqa: S603 - the arguments are our own.
        ["mvn", "--batch-mode", "--quiet", "-f", project, *goal],  # noqa: S607
        check=True,
        stdin=subprocess.DEVNULL,
    )
