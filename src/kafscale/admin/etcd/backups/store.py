"""The snapshots of one cluster's etcd in a bucket: take, list, prune and fetch.

Invariants, wherever a process is killed:

* A snapshot is complete once its description exists. The description is written last, after the
  database was verified by its own checksum and stored; it is deleted first.
* `fetch` verifies every byte of a complete snapshot against its description.
* Memory is bounded: a snapshot is spooled to an unnamed file that disappears with the process.
* Objects of incomplete snapshots are deleted by `prune` once they are old enough to be abandoned.

The operator decides when to take a snapshot; `listing` selects the member.
"""

import mmap
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, Final, Protocol

import msgspec

from kafscale.admin.etcd.backups import snapshot_format
from kafscale.admin.etcd.backups.snapshot_format import SnapshotChecksum, SnapshotName
from kafscale.errors import (
    DamagedObjectError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.metadata.schema.protobuf import format_time
from kafscale.metadata.store.etcd.maintenance import MemberStatus
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.text.json import DECODE_ERRORS

CHUNK_BYTES: Final = 8 << 20
"""The size of reads and writes."""

SINGLE_PUT_BYTES_MAX: Final = 64 << 20
"""Up to this size a database is written by one create-only request, which needs all of it in
memory; a larger one is uploaded in parts."""

ABANDONED_MS: Final = 6 * 3_600_000
"""An object without its counterpart is abandoned at this age."""

_PROBE: Final = "access-probe"
_PROBE_CONTENT: Final = b"The operator can write here.\n"

Progress = Callable[[int, int], None]
"""Called with the number of bytes done and the approximate total."""


class SourceError(StoreUnavailableError):
    """A member could not be read to the end; another may be."""


class SnapshotSource(Protocol):
    """A member of etcd, as in `metadata.store.etcd.maintenance`."""

    async def status(self) -> MemberStatus: ...

    def snapshot(self) -> AsyncGenerator[bytes, None]: ...


class SnapshotDescription(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object beside a snapshot that describes it."""

    sha256: str
    """Of the object, as printed by `sha256sum`."""
    size_bytes: int
    revision: int
    """The snapshot contains at least everything up to this revision."""
    etcd_version: str
    cluster_id: str
    """Of etcd, in hexadecimal digits."""
    taken_at: str


class StoredSnapshot(msgspec.Struct, frozen=True, order=True):
    """A complete snapshot in a listing; sorts by time."""

    name: SnapshotName
    key: str
    size_bytes: int

    @property
    def taken_at_ms(self) -> int:
        return self.name.taken_at_ms


class SnapshotStore:
    """All snapshots under a prefix, which `snapshot_format.directory` returns."""

    def __init__(
        self, store: ObjectStore, prefix: str, clock: Callable[[], int], *, spool: str | None = None
    ) -> None:
        """`spool` is the directory of the temporary file."""
        self.prefix: Final = prefix.strip("/")
        self._store = store
        self._clock = clock
        self._spool = spool

    async def take(
        self, source: SnapshotSource, progress: Progress = lambda _done, _all: None
    ) -> StoredSnapshot:
        """Take a snapshot from this member."""
        taken_at_ms = self._clock()
        with self._spool_file() as file:
            status, checksum = await _spool_snapshot(source, file, progress)
            name = SnapshotName(taken_at_ms // 1000 * 1000, status.revision)
            key = snapshot_format.database_key(self.prefix, name)
            is_small = checksum.size_bytes <= SINGLE_PUT_BYTES_MAX
            await self._store.put(key, _map_file(file), create=is_small)
        description = SnapshotDescription(
            sha256=checksum.sha256,
            size_bytes=checksum.size_bytes,
            revision=status.revision,
            etcd_version=status.version,
            cluster_id=f"{status.cluster_id:x}",
            taken_at=format_time(taken_at_ms),
        )
        await self._store.put(
            snapshot_format.description_key(key), [msgspec.json.encode(description)]
        )
        return StoredSnapshot(name, key, checksum.size_bytes)

    async def list(self) -> Sequence[StoredSnapshot]:
        """All complete snapshots, oldest first."""
        return _complete(await self._objects())

    async def newest(self) -> StoredSnapshot | None:
        return max(await self.list(), default=None)

    async def find(self, name: str) -> str:
        """The key of a snapshot by its key, its name, or `latest`."""
        if name == snapshot_format.LATEST:
            newest = await self.newest()
            if newest is None:
                raise OperatingError(f"there is no snapshot under {self.prefix}/")
            return newest.key
        return name if "/" in name else f"{self.prefix}/{name}"

    async def describe(self, key: str) -> SnapshotDescription:
        """Read the description of a snapshot; raises an error if it is incomplete."""
        try:
            content = await self._store.get(snapshot_format.description_key(key))
        except ObjectNotFoundError:
            raise OperatingError(f"there is no complete snapshot {key}") from None
        try:
            return msgspec.json.decode(content, type=SnapshotDescription)
        except DECODE_ERRORS as error:
            raise DamagedObjectError(snapshot_format.description_key(key), str(error)) from error

    async def fetch(
        self, key: str, path: Path, progress: Progress = lambda _done, _all: None
    ) -> SnapshotDescription:
        """Write a snapshot to a file; if this fails, the content of the file is invalid."""
        with path.open("wb") as file:
            return await self._read(key, file.write, progress)

    async def verify(self, key: str) -> SnapshotDescription:
        """Read a whole snapshot; raise `DamagedObjectError` if it is damaged."""
        return await self._read(key, lambda _chunk: None, lambda _done, _all: None)

    async def prune(self, retain: int) -> Sequence[str]:
        """Delete all but the newest `retain` snapshots, and abandoned objects; return the keys."""
        assert retain >= 1, retain
        objects = await self._objects()
        complete = _complete(objects)
        surplus = [each.key for each in complete[:-retain]]
        kept = {each.key for each in complete}
        kept |= {snapshot_format.description_key(key) for key in kept}
        abandoned = [
            key
            for key, info in objects.items()
            if key not in kept and self._clock() - info.modified_ms > ABANDONED_MS
        ]
        await self._store.delete([snapshot_format.description_key(key) for key in surplus])
        await self._store.delete([*surplus, *abandoned])
        return [*surplus, *abandoned]

    async def check_access(self) -> None:
        """Write, read and delete an object; raise an error if that fails."""
        key = f"{self.prefix}/{_PROBE}"
        await self._store.put(key, [_PROBE_CONTENT], create=False)
        if bytes(await self._store.get(key)) != _PROBE_CONTENT:
            raise DamagedObjectError(key, "it differs from what was just written")
        await self._store.delete([key])

    @contextmanager
    def _spool_file(self) -> Iterator[IO[bytes]]:
        """An unnamed temporary file; errors such as a full disk become `OperatingError`."""
        try:
            with tempfile.TemporaryFile(dir=self._spool) as file:
                yield file
        except OSError as error:
            directory = self._spool or tempfile.gettempdir()
            raise OperatingError(f"cannot write the snapshot to {directory}: {error}") from error

    async def _read(
        self, key: str, write: Callable[[memoryview], object], progress: Progress
    ) -> SnapshotDescription:
        description = await self.describe(key)
        checksum = SnapshotChecksum()
        while chunk := await self._store.get_range(
            key, checksum.size_bytes, checksum.size_bytes + CHUNK_BYTES
        ):
            checksum.update(chunk)
            write(chunk)
            progress(checksum.size_bytes, description.size_bytes)
        if checksum.size_bytes != description.size_bytes:
            raise DamagedObjectError(
                key, f"it has {checksum.size_bytes} bytes instead of {description.size_bytes}"
            )
        if checksum.sha256 != description.sha256 or not checksum.is_valid:
            raise DamagedObjectError(key, "checksum mismatch")
        return description

    async def _objects(self) -> dict[str, ObjectInfo]:
        """All objects with names of snapshots."""
        return {
            info.key: info
            async for chunk in self._store.list(f"{self.prefix}/")
            for info in chunk
            if snapshot_format.parse(info.key) and info.key.rpartition("/")[0] == self.prefix
        }


def _complete(objects: dict[str, ObjectInfo]) -> Sequence[StoredSnapshot]:
    snapshots = []
    for key, info in objects.items():
        name = snapshot_format.parse(key)
        assert name, key
        if (
            key.endswith(snapshot_format.DATABASE_SUFFIX)
            and snapshot_format.description_key(key) in objects
        ):
            snapshots.append(StoredSnapshot(name, key, info.size_bytes))
    return sorted(snapshots)


async def _spool_snapshot(
    source: SnapshotSource, file: IO[bytes], progress: Progress
) -> tuple[MemberStatus, SnapshotChecksum]:
    """Write the snapshot of a member to a file, and verify its checksum."""
    checksum = SnapshotChecksum()
    try:
        # Read before the snapshot, which therefore contains everything up to this revision.
        status = await source.status()
        async with aclosing(source.snapshot()) as chunks:
            async for chunk in chunks:
                checksum.update(chunk)
                file.write(chunk)
                progress(checksum.size_bytes, max(status.database_bytes, checksum.size_bytes))
    except StoreUnavailableError as error:
        raise SourceError(str(error)) from error
    if not checksum.is_valid:
        raise SourceError(
            f"checksum mismatch in a snapshot of {checksum.size_bytes} bytes from etcd"
        )
    file.flush()
    return status, checksum


def _map_file(file: IO[bytes]) -> Sequence[memoryview]:
    """The content of a file as memory-mapped chunks; unmapped with the last view."""
    whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return [whole[start : start + CHUNK_BYTES] for start in range(0, len(whole), CHUNK_BYTES)]
