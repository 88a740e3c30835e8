"""A real Apache Kafka, one node in KRaft mode, to be measured beside a broker of ours.

    with KafkaServer(tmp_path) as kafka:
        kafka.address

Its settings are Kafka's own defaults, but for those that are given, and its flags those of
`kafka-server-start`, so that what is measured is what people run. Like Kafka by default, it forces
nothing to the disk.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from services import java
from services.process import free_port, wait_until_listening

HOST = "127.0.0.1"
START_S_MAX = 180
STOP_S_MAX = 60
"""With thousands of partitions it takes its time, and a Kafka that is killed has to recover."""

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
_FLAGS = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


class KafkaServer:
    """One Kafka broker; its data directory and port survive restarts."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` have the names of Kafka's server properties."""
        self.directory = directory
        self.settings = dict(settings or {})
        self.log = directory / "kafka.log"
        self.port = free_port()
        self._controller_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._format()
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.terminate()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self) -> Self:
        """Start, and wait until clients can come."""
        assert self._process is None, "it runs already"
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the command is a test's own.
                ["java", *_FLAGS, "-cp", f"{java.jars()}/*", "kafka.Kafka", self._properties],  # noqa: S607
                # One arena a core, as Kafka's container image has it: glibc hoards memory else.
                env={**os.environ, "MALLOC_ARENA_MAX": "2"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until_listening(self._process, self.port, self.log, START_S_MAX)
        return self

    def kill(self) -> None:
        process = self._take()
        process.kill()
        process.wait()

    def terminate(self) -> None:
        process = self._take()
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _take(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it does not run"
        process, self._process = self._process, None
        return process

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _format(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{HOST}:{self._controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{self.address},CONTROLLER://{HOST}:{self._controller_port}
log.dirs={self.directory / "logs"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
            + "".join(f"{name}={value}\n" for name, value in self.settings.items())
        )
        properties = str(self._properties)
        java.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties)
