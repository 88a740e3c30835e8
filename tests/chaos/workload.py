"""The clients of a round, each in its own process, and the histories that they write."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaos.clients.options import ClientOptions

TESTS = Path(__file__).parents[1]
FINISH_S_MAX = 150

GROUP, AIO_GROUP = "group", "aio-group"
RECREATED_PARTITIONS = 2
COMPACTED_PARTITIONS = 2
TRANSACTIONAL_PARTITIONS = 3


class WorkloadOptions(NamedTuple):
    """The options of all clients of a round."""

    bootstrap: str
    topic: str
    partitions: int
    directory: Path
    seed: int
    control: tuple[str, ...]
    """The control plane addresses of brokers."""
    bucket: dict[str, str]
    """The name, endpoint and keys of the bucket."""


class Workload:
    """Starts the clients, and waits for their ends."""

    def __init__(self, options: WorkloadOptions) -> None:
        self._options = options
        self.histories = options.directory / "histories"
        self.recreated_histories = options.directory / "recreated"
        """Those of the topic that is deleted and created again."""
        self.compacted_histories = options.directory / "compacted"
        """Those of the topic that brokers compact."""
        self.transactional_histories = options.directory / "transactional"
        """Those of the topic that is written in transactions."""
        self.failures: list[str] = []
        """Clients that exited with an error."""

    @contextmanager
    def running_clients(self) -> Iterator[None]:
        """Run all clients while the block runs; they have finished when it ends."""
        groups = (GROUP, AIO_GROUP)
        clients = [
            self._start("idempotent", "idempotent"),
            self._start("plain", "plain"),
            self._start("aio-producer", "aio-producer"),
            self._start("seeking-reader", "seeking-reader"),
            self._start("member", "member-a", group=GROUP),
            self._start("member", "member-b", group=GROUP),
            self._start("aio-member", "aio-member", group=AIO_GROUP),
            self._start("probe", "probe-a", groups=groups),
            self._start("probe", "probe-b", groups=groups),
            self._start("merger", "merger"),
            self._start_on_recreated("recreator"),
            self._start_on_compacted("compacted-writer", "compacted-writer-a"),
            self._start_on_compacted("compacted-writer", "compacted-writer-b"),
            self._start_on_compacted("compacted-reader", "compacted-reader"),
            self._start_on_transactional("transactional-writer", "transactional-writer-a"),
            self._start_on_transactional("transactional-writer", "transactional-writer-b"),
            self._start_on_transactional("committed-reader", "committed-reader"),
        ]
        try:
            yield
        finally:
            for client in clients:
                assert client.stdin is not None
                client.stdin.close()
            for client in clients:
                self._finish(client)

    def run(self, role: str) -> None:
        """Run a client that ends without a stop signal."""
        self._finish(self._start(role, role, groups=(GROUP, AIO_GROUP)))

    def run_on_recreated(self, role: str) -> None:
        self._finish(self._start_on_recreated(role))

    def run_on_compacted(self, role: str) -> None:
        self._finish(self._start_on_compacted(role, role))

    def run_on_transactional(self, role: str) -> None:
        self._finish(self._start_on_transactional(role, role))

    def _start(
        self, role: str, name: str, *, group: str = "", groups: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        options = self._options
        client_options = ClientOptions(
            role,
            name,
            options.bootstrap,
            options.topic,
            options.partitions,
            str(self.histories),
            seed=random.Random(f"{options.seed} {name}").getrandbits(32),
            group=self._of_topic(group),
            groups=tuple(map(self._of_topic, groups)),
            control=options.control,
            bucket=options.bucket,
        )
        return self._launch(client_options)

    def _start_on_recreated(self, role: str) -> subprocess.Popen[bytes]:
        """Start a client of the topic that is deleted and created again."""
        topic = f"recreated-{self._options.topic}"
        return self._start_on(role, role, topic, RECREATED_PARTITIONS, self.recreated_histories)

    def _start_on_compacted(self, role: str, name: str) -> subprocess.Popen[bytes]:
        """Start a client of the topic that brokers compact."""
        topic = compacted_topic(self._options.topic)
        return self._start_on(role, name, topic, COMPACTED_PARTITIONS, self.compacted_histories)

    def _start_on_transactional(self, role: str, name: str) -> subprocess.Popen[bytes]:
        """Start a client of the topic that is written in transactions."""
        topic = transactional_topic(self._options.topic)
        return self._start_on(
            role, name, topic, TRANSACTIONAL_PARTITIONS, self.transactional_histories
        )

    def _start_on(
        self, role: str, name: str, topic: str, partitions: int, histories: Path
    ) -> subprocess.Popen[bytes]:
        options = self._options
        return self._launch(
            ClientOptions(
                role,
                name,
                options.bootstrap,
                topic,
                partitions,
                str(histories),
                seed=random.Random(f"{options.seed} {name}").getrandbits(32),
            )
        )

    def _launch(self, client_options: ClientOptions) -> subprocess.Popen[bytes]:
        options = self._options
        options.directory.mkdir(parents=True, exist_ok=True)
        with (options.directory / f"{client_options.name}.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - the command is our own.
                [
                    sys.executable,
                    "-m",
                    "chaos.clients",
                    msgspec.json.encode(client_options).decode(),
                ],
                env={**os.environ, "PYTHONPATH": _python_path()},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def _of_topic(self, group: str) -> str:
        """Name a group after the topic, so that rounds do not share groups."""
        return f"{group}-{self._options.topic}" if group else ""

    def _finish(self, client: subprocess.Popen[bytes]) -> None:
        try:
            code = client.wait(FINISH_S_MAX)
        except subprocess.TimeoutExpired:
            client.kill()
            code = client.wait()
        if client.stdin is not None:
            client.stdin.close()
        if code:
            client_options = msgspec.json.decode(client.args[-1], type=ClientOptions)
            log = self._options.directory / f"{client_options.name}.log"
            output = log.read_text(errors="replace")[-2000:]
            self.failures.append(f"{client_options.name} exited with {code}: {output}")


def compacted_topic(topic: str) -> str:
    """The name of the compacted topic of the round that has this topic."""
    return f"compacted-{topic}"


def transactional_topic(topic: str) -> str:
    return f"transactional-{topic}"


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(TESTS), inherited] if inherited else [str(TESTS)])
