"""S3 servers to test against: a real one that keeps files, and a simulated one in Python.

    with s3_server(tmp_path) as bucket:
        store = S3ObjectStore(bucket)

The real one is Versity's gateway: it is built in two minutes, and its create-only PUT is atomic, as
`tests/integration/objects` proves. Where there is no Go to build it, the block is not entered:
`is_available` tells before, and may take those two minutes.
"""

import os
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafscale.storage.objects import S3Bucket
from services.go_program import go_program
from services.process import free_port, running

BUCKET = "kafscale-test"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"  # noqa: S105 - of a server that lives as long as a test.

VERSITYGW = ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")


def is_available() -> bool:
    """Whether there is a real server here, building it if need be."""
    return go_program(*VERSITYGW) is not None


@contextmanager
def s3_server(directory: Path) -> Iterator[S3Bucket]:
    """A real S3 server with one empty bucket, which is kept in `directory`."""
    program = go_program(*VERSITYGW)
    assert program is not None, "ask is_available first"
    port = free_port()
    (directory / "buckets" / BUCKET).mkdir(parents=True, exist_ok=True)
    command = [
        program, "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet",
        "posix", directory / "buckets",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "ROOT_ACCESS_KEY": ACCESS_KEY,
        "ROOT_SECRET_KEY": SECRET_KEY,
    }
    with running(command, port=port, log=directory / "server.log", environment=environment):
        yield _bucket(port)


@contextmanager
def moto_server(directory: Path) -> Iterator[S3Bucket]:
    """A simulated S3 server with one empty bucket, which needs nothing but Python."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = directory / "server.log"
    with running(command, port=port, log=log, environment=os.environ):
        create = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(create, timeout=10) as answer:  # noqa: S310 - to ourselves.
            assert answer.status == 200
        yield _bucket(port)


def _bucket(port: int) -> S3Bucket:
    return S3Bucket(
        name=BUCKET,
        endpoint=f"http://127.0.0.1:{port}",
        path_style=True,
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )
