"""Makes the data directory of a member of etcd from a snapshot, with `etcdutl`.

The laws:

* A directory has data when the `member` in it has a log, which is what etcd looks for: one that
  gave up before it began leaves a database without. The member comes into being in one step, when
  everything in it is on the disk: whoever is killed before leaves a directory that has no data, and
  is restored again from the beginning.
* What was there is never deleted: it is moved aside, and data only if that was asked for.
* The revision of the store leaps (see `metadata.restored`), so that nobody takes the store for the
  one that it was, and brokers know by themselves that there is something to settle. An etcdutl that
  is too old cannot do that; then the store has to be marked before brokers come.
* All members of a cluster are to be restored from the same snapshot, each by itself.

It blocks, and is for a command or a container that does nothing else.
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

from kafscale.admin.etcd.backups.checksum import SnapshotDigest
from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.metadata.cluster.restore_marker import REVISION_BUMP

MEMBER: Final = "member"
"""The directory in which etcd keeps everything."""

_STAGING: Final = ".restoring"
_LEAP: Final = "--bump-revision"
_READ_BYTES: Final = 1 << 20
_SECONDS_MAX: Final = 1800


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the member will be; all members of a cluster agree on the last two."""

    name: str
    advertise_peer_urls: str
    initial_cluster: str
    initial_cluster_token: str


def has_data(directory: Path) -> bool:
    """Whether there is a member in it that has begun, with whatever data."""
    return any((directory / MEMBER / "wal").glob("*.wal"))


def has_member(directory: Path) -> bool:
    """Whether there is a member in it, be it one that has never begun."""
    return (directory / MEMBER).exists()


def check_file(path: Path) -> None:
    """Read a snapshot that is a file to the last byte; raise if it is not whole."""
    digest = SnapshotDigest()
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    except OSError as error:
        raise OperatingError(f"{path} cannot be read: {error.strerror}") from error
    if not digest.is_whole:
        raise DamagedObjectError(str(path), "its checksum does not hold: it is no whole snapshot")


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """A room in the data directory itself, on the same volume, that is gone afterwards."""
    room = directory / _STAGING
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(mode=0o700)
    except OSError as error:
        raise OperatingError(f"{directory} cannot be written: {error.strerror}") from error
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def restore(
    program: str,
    snapshot: Path,
    directory: Path,
    room: Path,
    identity: Identity,
    *,
    aside: str = "",
) -> bool:
    """Make a member of a snapshot, in the room of a `staging`; whether the revision has leapt.

    A member that is there already is moved to the name `aside`, beside the new one.
    """
    if has_member(directory):
        assert aside, "what is there is never deleted"
        _check_at_rest(directory / MEMBER)
    can_leap = _LEAP in _run([program, "snapshot", "restore", "--help"])
    _run(
        [
            program,
            "snapshot",
            "restore",
            str(snapshot),
            "--data-dir",
            str(room / "data"),
            "--name",
            identity.name,
            "--initial-cluster",
            identity.initial_cluster,
            "--initial-cluster-token",
            identity.initial_cluster_token,
            "--initial-advertise-peer-urls",
            identity.advertise_peer_urls,
            *([_LEAP, str(REVISION_BUMP), "--mark-compacted"] if can_leap else []),
        ]
    )
    _force_to_disk(room / "data" / MEMBER)
    if has_member(directory):
        (directory / MEMBER).rename(directory / aside)
    (room / "data" / MEMBER).rename(directory / MEMBER)
    _fsync(directory)
    return can_leap


def _run(command: list[str]) -> str:
    """What a program says; raises with its last words if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - the program is named by whoever restores.
            command, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatingError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise OperatingError(f"{command[0]} failed with {done.returncode}: {words[-1]}")
    return done.stdout + done.stderr


def _check_at_rest(member: Path) -> None:
    """Refuse to take a database away from an etcd that is running on it."""
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


def _force_to_disk(directory: Path) -> None:
    for parent, _, names in os.walk(directory):
        for path in [parent, *(f"{parent}/{name}" for name in names)]:
            _fsync(Path(path))


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
