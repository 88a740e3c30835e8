"""The snapshots of one cluster's etcd, in a bucket: taken, listed, thinned out and fetched.

The laws, which hold wherever a process dies:

* A snapshot counts once its description is there. That is written last, after the database was
  proven to be whole by its own checksum and was stored; it is deleted first.
* What counts is whole: `fetch` compares every byte that it reads with the description.
* Memory is bounded: a snapshot is spooled to a file that has no name and goes with the process.
* What was begun and never finished is found by `prune`, once nobody can still be at it.

When to take one, and from whom, is left to `snapshot_keeping`.
"""

import mmap
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, Final, Protocol

import msgspec

from kafscale.admin.etcd.backups import object_keys
from kafscale.admin.etcd.backups.checksum import SnapshotDigest
from kafscale.admin.etcd.backups.object_keys import SnapshotName
from kafscale.errors import (
    DamagedObjectError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.metadata.schema.protobuf import format_time
from kafscale.metadata.store.etcd.maintenance import MemberStatus
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

PIECE_BYTES: Final = 8 << 20
"""How much is read from a bucket, or handed to it, at once."""

CREATED_BYTES_MAX: Final = 64 << 20
"""Up to this size a database is written in one request, which cannot replace another's and has all
of it in memory; a larger one goes in parts."""

ABANDONED_MS: Final = 6 * 3_600_000
"""How old an object without its counterpart is before it is taken for abandoned."""

_PROBE: Final = "access-probe"
_PROBE_CONTENT: Final = b"The operator can write here.\n"

Progress = Callable[[int, int], None]
"""Is told how many bytes are done, and how many there are, about."""


class SourceError(StoreUnavailableError):
    """A member that could not be read to the end; another may be."""


class SnapshotSource(Protocol):
    """A member of etcd, as `metadata.etcd.maintenance` has it."""

    async def status(self) -> MemberStatus: ...

    def snapshot(self) -> AsyncGenerator[bytes, None]: ...


class Description(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is said of a snapshot in the object beside it."""

    sha256: str
    """Of the object, as `sha256sum` prints it."""
    size_bytes: int
    revision: int
    """Everything up to it is in there, and perhaps a little more."""
    etcd_version: str
    cluster_id: str
    """Of etcd, in hexadecimal digits."""
    taken_at: str


class StoredSnapshot(msgspec.Struct, frozen=True, order=True):
    """A snapshot that counts, as a listing tells of it; in the order of time."""

    name: SnapshotName
    key: str
    size_bytes: int

    @property
    def taken_at_ms(self) -> int:
        return self.name.taken_at_ms


class Snapshots:
    """All snapshots below a prefix, which `snapshot_keys.directory` makes."""

    def __init__(
        self, store: ObjectStore, prefix: str, clock: Callable[[], int], *, spool: str | None = None
    ) -> None:
        """`spool` is the directory that a snapshot waits in until it is stored."""
        self.prefix: Final = prefix.strip("/")
        self._store = store
        self._clock = clock
        self._spool = spool

    async def take(
        self, source: SnapshotSource, progress: Progress = lambda _done, _all: None
    ) -> StoredSnapshot:
        """Take one now, from this member."""
        taken_at_ms = self._clock()
        with self._spooling() as file:
            status, digest = await _spooled(source, file, progress)
            name = SnapshotName(taken_at_ms // 1000 * 1000, status.revision)
            key = object_keys.database_key(self.prefix, name)
            is_small = digest.size_bytes <= CREATED_BYTES_MAX
            await self._store.put(key, _mapped(file), create=is_small)
        description = Description(
            sha256=digest.sha256,
            size_bytes=digest.size_bytes,
            revision=status.revision,
            etcd_version=status.version,
            cluster_id=f"{status.cluster_id:x}",
            taken_at=format_time(taken_at_ms),
        )
        await self._store.put(object_keys.description_key(key), [msgspec.json.encode(description)])
        return StoredSnapshot(name, key, digest.size_bytes)

    async def list(self) -> Sequence[StoredSnapshot]:
        """All that count, the oldest first."""
        return _counting(await self._objects())

    async def newest(self) -> StoredSnapshot | None:
        return max(await self.list(), default=None)

    async def find(self, wanted: str) -> str:
        """The key of a snapshot by its key, by its name, or as the `latest`."""
        if wanted == object_keys.LATEST:
            newest = await self.newest()
            if newest is None:
                raise OperatingError(f"there is no snapshot below {self.prefix}/")
            return newest.key
        return wanted if "/" in wanted else f"{self.prefix}/{wanted}"

    async def describe(self, key: str) -> Description:
        """What is said of a snapshot; without that it does not count."""
        try:
            said = await self._store.get(object_keys.description_key(key))
        except ObjectNotFoundError:
            raise OperatingError(f"there is no snapshot {key}, or none that was finished") from None
        try:
            return msgspec.json.decode(said, type=Description)
        except msgspec.MsgspecError as error:
            raise DamagedObjectError(object_keys.description_key(key), str(error)) from error

    async def fetch(
        self, key: str, path: Path, progress: Progress = lambda _done, _all: None
    ) -> Description:
        """Write a snapshot to a file; where this fails, what is in the file is worth nothing."""
        with path.open("wb") as file:
            return await self._read(key, file.write, progress)

    async def verify(self, key: str) -> Description:
        """Read a snapshot to the last byte; raise `DamagedObjectError` if it is not whole."""
        return await self._read(key, lambda _piece: None, lambda _done, _all: None)

    async def prune(self, retain: int) -> Sequence[str]:
        """Delete the oldest snapshots beyond `retain`, and what was abandoned; say which."""
        assert retain >= 1, retain
        objects = await self._objects()
        counting = _counting(objects)
        surplus = [each.key for each in counting[:-retain]]
        kept = {each.key for each in counting}
        kept |= {object_keys.description_key(key) for key in kept}
        abandoned = [
            key
            for key, info in objects.items()
            if key not in kept and self._clock() - info.modified_ms > ABANDONED_MS
        ]
        await self._store.delete([object_keys.description_key(key) for key in surplus])
        await self._store.delete([*surplus, *abandoned])
        return [*surplus, *abandoned]

    async def check_access(self) -> None:
        """Write, read and delete an object; raise what stands in the way."""
        key = f"{self.prefix}/{_PROBE}"
        await self._store.put(key, [_PROBE_CONTENT], create=False)
        if bytes(await self._store.get(key)) != _PROBE_CONTENT:
            raise DamagedObjectError(key, "it is not what was written a moment ago")
        await self._store.delete([key])

    @contextmanager
    def _spooling(self) -> Iterator[IO[bytes]]:
        """A file without a name, whose disk may be full."""
        try:
            with tempfile.TemporaryFile(dir=self._spool) as file:
                yield file
        except OSError as error:
            place = self._spool or tempfile.gettempdir()
            raise OperatingError(f"the snapshot finds no room in {place}: {error}") from error

    async def _read(
        self, key: str, take: Callable[[memoryview], object], progress: Progress
    ) -> Description:
        description = await self.describe(key)
        digest = SnapshotDigest()
        while piece := await self._store.get_range(
            key, digest.size_bytes, digest.size_bytes + PIECE_BYTES
        ):
            digest.update(piece)
            take(piece)
            progress(digest.size_bytes, description.size_bytes)
        if digest.size_bytes != description.size_bytes:
            raise DamagedObjectError(
                key,
                f"it has {digest.size_bytes} bytes, where {description.size_bytes} were written",
            )
        if digest.sha256 != description.sha256 or not digest.is_whole:
            raise DamagedObjectError(key, "its checksum does not hold")
        return description

    async def _objects(self) -> dict[str, ObjectInfo]:
        """All objects that are named like those of snapshots."""
        return {
            info.key: info
            async for chunk in self._store.list(f"{self.prefix}/")
            for info in chunk
            if object_keys.parse(info.key) and info.key.rpartition("/")[0] == self.prefix
        }


def _counting(objects: dict[str, ObjectInfo]) -> Sequence[StoredSnapshot]:
    found = []
    for key, info in objects.items():
        name = object_keys.parse(key)
        assert name, key
        if (
            key.endswith(object_keys.DATABASE_SUFFIX)
            and object_keys.description_key(key) in objects
        ):
            found.append(StoredSnapshot(name, key, info.size_bytes))
    return sorted(found)


async def _spooled(
    source: SnapshotSource, file: IO[bytes], progress: Progress
) -> tuple[MemberStatus, SnapshotDigest]:
    """Write what a member sends to a file, and prove that it is whole."""
    digest = SnapshotDigest()
    try:
        # Before the snapshot, so that everything up to this revision is in it.
        status = await source.status()
        async with aclosing(source.snapshot()) as pieces:
            async for piece in pieces:
                digest.update(piece)
                file.write(piece)
                progress(digest.size_bytes, max(status.database_bytes, digest.size_bytes))
    except StoreUnavailableError as error:
        raise SourceError(str(error)) from error
    if not digest.is_whole:
        raise SourceError(f"etcd sent {digest.size_bytes} bytes whose checksum does not hold")
    file.flush()
    return status, digest


def _mapped(file: IO[bytes]) -> Sequence[memoryview]:
    """What is in a file, without having it in memory; it is let go of with the last view."""
    whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return [whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES)]
