"""The clients of a run, each a process of its own, and the histories that they leave behind."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaos.clients.orders import Orders

TESTS = Path(__file__).parents[1]
FINISH_S_MAX = 150

GROUP, AIO_GROUP = "group", "aio-group"


class Scene(NamedTuple):
    """Where the clients of a run work."""

    bootstrap: str
    topic: str
    partitions: int
    directory: Path
    seed: int


class Workload:
    """Starts clients and sees to it that they come home."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.histories = scene.directory / "histories"
        self.complaints: list[str] = []
        """Clients that ended in another way than they should."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """All clients, as long as the block lasts; behind it all of them have finished."""
        groups = (GROUP, AIO_GROUP)
        clients = [
            self._start("idempotent", "idempotent"),
            self._start("plain", "plain"),
            self._start("aio-producer", "aio-producer"),
            self._start("wanderer", "wanderer"),
            self._start("member", "member-a", group=GROUP),
            self._start("member", "member-b", group=GROUP),
            self._start("aio-member", "aio-member", group=AIO_GROUP),
            self._start("probe", "probe-a", groups=groups),
            self._start("probe", "probe-b", groups=groups),
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
        """A client that comes to an end by itself."""
        client = self._start(role, role, groups=(GROUP, AIO_GROUP))
        self._finish(client)

    def _start(
        self, role: str, name: str, *, group: str = "", groups: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        scene = self._scene
        orders = Orders(
            role,
            name,
            scene.bootstrap,
            scene.topic,
            scene.partitions,
            str(self.histories),
            seed=random.Random(f"{scene.seed} {name}").getrandbits(32),
            group=self._of_topic(group),
            groups=tuple(map(self._of_topic, groups)),
        )
        scene.directory.mkdir(parents=True, exist_ok=True)
        with (scene.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - the command is our own.
                [sys.executable, "-m", "chaos.clients", msgspec.json.encode(orders).decode()],
                env={**os.environ, "PYTHONPATH": _python_path()},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def _of_topic(self, group: str) -> str:
        """Groups of other topics are others."""
        return f"{group}-{self._scene.topic}" if group else ""

    def _finish(self, client: subprocess.Popen[bytes]) -> None:
        try:
            code = client.wait(FINISH_S_MAX)
        except subprocess.TimeoutExpired:
            client.kill()
            code = client.wait()
        if client.stdin is not None:
            client.stdin.close()
        if code:
            orders = msgspec.json.decode(client.args[-1], type=Orders)
            log = self._scene.directory / f"{orders.name}.log"
            said = log.read_text(errors="replace")[-2000:]
            self.complaints.append(f"{orders.name} ended with {code}: {said}")


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(TESTS), inherited] if inherited else [str(TESTS)])
