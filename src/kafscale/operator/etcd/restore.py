"""Creates the data directory of an etcd member from a snapshot, with `etcdutl`.

Invariants:

* A directory has data if its `member` contains a WAL, which is what etcd checks; a member that
  failed before it started leaves a database without one. The member appears in one rename, after
  everything is on disk: a restore that is killed before leaves no data, and is repeated from the
  start.
* Existing files are never deleted. They are moved aside, and data only if that was requested.
* The revision of the store is bumped (see `metadata.cluster.restore_marker`), so that watchers do
  not mistake it for the former store, and brokers notice that metadata was restored. An old etcdutl
  cannot bump it; then the store has to be marked before brokers start.
* All members of a cluster must be restored from the same snapshot, each separately.

It blocks, and is meant for a command or a container that does nothing else.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kafscale.admin.etcd.backups.snapshot_format import SnapshotChecksum
from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.metadata.cluster.restore_marker import REVISION_BUMP

MEMBER: Final = "member"
"""The directory in which etcd keeps everything."""

_STAGING: Final = ".restoring"
_BUMP_REVISION: Final = "--bump-revision"
_READ_BYTES: Final = 1 << 20
_TIMEOUT_SECONDS: Final = 1800


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of the new member; all members of a cluster share the last two fields."""

    name: str
    advertise_peer_urls: str
    initial_cluster: str
    initial_cluster_token: str


def has_data(directory: Path) -> bool:
    """Whether it contains a member that has started."""
    return any((directory / MEMBER / "wal").glob("*.wal"))


def has_member(directory: Path) -> bool:
    """Whether it contains a member, even one that has never started."""
    return (directory / MEMBER).exists()


def check_file(path: Path) -> None:
    """Read a snapshot file completely; raise if its checksum does not match."""
    digest = SnapshotChecksum()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise OperatingError(f"{path} cannot be read: {error.strerror}") from error
    if not digest.is_valid:
        raise DamagedObjectError(str(path), "its checksum does not match: the snapshot is damaged")


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """A temporary directory inside the data directory, on the same volume."""
    free_space = directory / _STAGING
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(free_space, ignore_errors=True)
        free_space.mkdir(mode=0o700)
    except OSError as error:
        raise OperatingError(f"{directory} cannot be written: {error.strerror}") from error
    try:
        yield free_space
    finally:
        shutil.rmtree(free_space, ignore_errors=True)


def restore(
    program: str,
    snapshot: Path,
    directory: Path,
    free_space: Path,
    identity: Identity,
    *,
    moved_to: str = "",
) -> bool:
    """Restore a snapshot in a `staging` directory; return whether the revision was bumped.

    An existing member is moved to the name `moved_to`, beside the new one.
    """
    if has_member(directory):
        assert moved_to, "existing files are never deleted"
        _check_not_running(directory / MEMBER)
    can_bump = _BUMP_REVISION in _run([program, "snapshot", "restore", "--help"])
    _run(
        [
            program,
            "snapshot",
            "restore",
            str(snapshot),
            "--data-dir",
            str(free_space / "data"),
            "--name",
            identity.name,
            "--initial-cluster",
            identity.initial_cluster,
            "--initial-cluster-token",
            identity.initial_cluster_token,
            "--initial-advertise-peer-urls",
            identity.advertise_peer_urls,
            *([_BUMP_REVISION, str(REVISION_BUMP), "--mark-compacted"] if can_bump else []),
        ]
    )
    _fsync_tree(free_space / "data" / MEMBER)
    if has_member(directory):
        (directory / MEMBER).rename(directory / moved_to)
    (free_space / "data" / MEMBER).rename(directory / MEMBER)
    _fsync(directory)
    return can_bump


def _run(command: list[str]) -> str:
    """The output of a program; raises with its last line if it fails."""
    try:
        completed = subprocess.run(  # noqa: S603 - the caller names the program.
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatingError(f"{command[0]} cannot be run: {error}") from error
    if completed.returncode:
        output = (completed.stderr or completed.stdout).strip().splitlines() or ["no output"]
        raise OperatingError(f"{command[0]} failed with {completed.returncode}: {output[-1]}")
    return completed.stdout + completed.stderr


def _check_not_running(member: Path) -> None:
    """Raise if an etcd is running on the database."""
    database = member / "snap" / "db"
    if not database.exists():
        return
    with database.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatingError(
                f"etcd is running on {member.parent}; stop it before its data is replaced"
            ) from None


def _fsync_tree(directory: Path) -> None:
    for parent, _, names in os.walk(directory):
        for path in [parent, *(f"{parent}/{name}" for name in names)]:
            _fsync(Path(path))


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
