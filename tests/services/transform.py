"""Programs that read a topic and write its records to another one, exactly once.

    program = Transform("java", cluster.bootstrap, "input", "output", directory)
    with program:
        program.wait_for_commits(5)
        program.kill()

Each program uses one client library: it consumes in a group, and produces in transactions that
commit the group's offsets. It is started again when it exits, and has the same transactional id
then. It prints the outcome of each transaction: `committed`, `aborted` or `failed`.
"""

import sys
from pathlib import Path
from typing import Final

from services import java
from services.client_program import HOME, go_clients, missing_for
from services.supervised import SupervisedProcess

LIBRARIES: Final = ("librdkafka", "java", "franz")
_JAVA_FLAGS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def missing(library: str) -> str | None:
    """What this machine lacks for the program, if anything."""
    if library == "java":
        return None if java.is_available() else "Java"
    return missing_for("franz") if library == "franz" else None


class Transform(SupervisedProcess):
    """One program, which is restarted until the block ends."""

    def __init__(
        self,
        library: str,
        bootstrap: str,
        source: str,
        target: str,
        directory: Path,
        *,
        name: str = "transform",
        records: int = 20,
        abort_every: int = 5,
    ) -> None:
        options = {
            "bootstrap": bootstrap,
            "input": source,
            "output": target,
            "group": f"{target}-group",
            "transactional_id": f"{target}-{name}",
            "records": str(records),
            "abort_every": str(abort_every),
        }
        command = [*_program(library), *(f"{key}={text}" for key, text in options.items())]
        super().__init__(command, directory / f"{name}-{library}.log")
        self.group = options["group"]

    def wait_for_commits(self, more: int) -> None:
        """Wait until that many more transactions are committed."""
        self.wait_for("committed", more)


def _program(library: str) -> list[str | Path]:
    if library == "java":
        source = HOME / "java" / "Transform.java"
        return ["java", *_JAVA_FLAGS, "-cp", f"{java.jars()}/*", source]
    if library == "franz":
        return [go_clients() / "transform"]
    return [sys.executable, HOME / "python" / "transform.py"]
