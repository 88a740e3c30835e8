"""S3 servers for tests: a real one on files, and a simulated one in Python.

    with s3_server(tmp_path) as bucket:
        store = S3ObjectStore(bucket)

    with S3Server(tmp_path) as server:
        server.kill()
        server.start()

The real one is the Versity gateway. Its create-only PUT is atomic, which
`tests/integration/objects` checks. It is built with Go on first use, which takes two minutes; check
`is_available` before.
"""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from kafscale.storage.objects.s3.bucket_config import S3Bucket
from services.certificates import Certificates
from services.go_program import go_program
from services.process import STOP_S_MAX, free_port, running, wait_until_listening

BUCKET = "kafscale-test"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"  # noqa: S105 - of a server that lives as long as a test.

VERSITYGW = ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")


def is_available() -> bool:
    """Whether the real server can run; builds it on first use."""
    return go_program(*VERSITYGW) is not None


class S3Server:
    """A real S3 server with one bucket, which keeps its directory and port across restarts."""

    def __init__(
        self,
        directory: Path,
        host: str = "127.0.0.1",
        *,
        certificates: Certificates | None = None,
        options: Sequence[str | Path] = (),
    ) -> None:
        """`certificates` make it serve HTTPS; `options` are those of the program."""
        self._host = host
        self._certificates = certificates
        self._options = options
        self.root = directory / "buckets"
        """The parent of the buckets, which are directories; objects are files."""
        self._log = directory / "server.log"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.resume()
            self._end(signal.SIGTERM)

    @property
    def bucket(self) -> S3Bucket:
        bucket = _bucket(self._port, self._host)
        if self._certificates is None:
            return bucket
        return replace(bucket, endpoint=bucket.endpoint.replace("http://", "https://"))

    def start(self) -> Self:
        """Start, and wait until the server responds."""
        assert self._process is None, "already running"
        program = go_program(*VERSITYGW)
        assert program is not None, "check is_available first"
        (self.root / BUCKET).mkdir(parents=True, exist_ok=True)
        options = [*self._options]
        if self._certificates is not None:
            certificate, key = self._certificates.server_certificate, self._certificates.server_key
            options += ["--cert", certificate, "--key", key]
        credentials = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the program is of a pinned version.
                [
                    program,
                    "--port",
                    f"{self._host}:{self._port}",
                    "--keep-alive",
                    "--quiet",
                    *options,
                    "posix",
                    self.root,
                ],
                env={**os.environ, **credentials},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until_listening(self._process, self._port, self._log, host=self._host)
        except BaseException:
            self._end(signal.SIGKILL)
            raise
        return self

    def add_user(self, access_key: str, secret_key: str) -> None:
        """Create a user without permissions; this needs the option `--iam-dir`."""
        program = go_program(*VERSITYGW)
        subprocess.run(  # noqa: S603 - the program is of a pinned version.
            [
                *(program, "admin", "--endpoint-url", self.bucket.endpoint),
                *("--access", ACCESS_KEY, "--secret", SECRET_KEY, "create-user"),
                *("--access", access_key, "--secret", secret_key, "--role", "user"),
            ],
            check=True,
            capture_output=True,
            timeout=30,
        )

    def kill(self) -> None:
        """Kill the process, so that connections are refused."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop the process with SIGSTOP: connections are accepted, but get no response."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def objects(self, pattern: str) -> list[Path]:
        """The files of objects whose keys match a pattern such as `*/topic/0/*.kfs`."""
        return sorted(path for path in (self.root / BUCKET).glob(pattern) if path.is_file())

    def key(self, path: Path) -> str:
        return path.relative_to(self.root / BUCKET).as_posix()

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None, "not running"
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def s3_server(directory: Path) -> Iterator[S3Bucket]:
    """Run a real S3 server with one empty bucket, stored in `directory`."""
    with S3Server(directory) as server:
        yield server.bucket


@contextmanager
def moto_server(directory: Path) -> Iterator[S3Bucket]:
    """Run a simulated S3 server with one empty bucket; it needs only Python."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = directory / "server.log"
    with running(command, port=port, log=log, environment=os.environ):
        create = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(create, timeout=10) as response:  # noqa: S310 - to ourselves.
            assert response.status == 200
        yield _bucket(port)


def _bucket(port: int, host: str = "127.0.0.1") -> S3Bucket:
    return S3Bucket(
        name=BUCKET,
        endpoint=f"http://{host}:{port}",
        path_style=True,
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )


def broker_settings(bucket: S3Bucket) -> dict[str, str]:
    """The settings of a broker that uses this bucket."""
    return {
        "s3_bucket": bucket.name,
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
    }


def key_variables(bucket: S3Bucket) -> dict[str, str]:
    """The access keys of a bucket as environment variables, as in a Secret."""
    return {
        "KAFSCALE_S3_ACCESS_KEY": bucket.access_key,
        "KAFSCALE_S3_SECRET_KEY": bucket.secret_key,
    }
