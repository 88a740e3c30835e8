"""Table maintenance: merges small files, expires old versions, removes orphaned files.

The laws: merging changes no row and no offset, and replaces only files that it has read, so that
whatever others commit meanwhile stays; a group of files that somebody else has replaced in the
meantime is left alone. Left-overs are files of ours that no version names, and that are so old that
nobody can be about to commit them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from kafscale.observability.logging import get_logger
from kafscale.spark.tables.base import (
    COMMIT_ATTEMPTS_MAX,
    Change,
    CommitConflictError,
    DataFile,
    Execute,
    Files,
    Table,
)
from kafscale.spark.tables.writer import Encoding, FileWriter

log = get_logger(__name__)

DAY_MS: Final = 24 * 3600 * 1000
ORPHAN_AGE_MS: Final = DAY_MS
GROUP_MIN: Final = 2


@dataclass(frozen=True, kw_only=True)
class MaintenanceOptions:
    """What is to be done."""

    merges_files: bool = False
    expires_after_ms: int | None = None
    """How old a version may become; None keeps all."""

    @property
    def is_enabled(self) -> bool:
        return self.merges_files or self.expires_after_ms is not None


class MaintenanceResult(msgspec.Struct):
    """What has been done for a table."""

    merged_count: int = 0
    """Files that are gone into others."""
    expired_count: int = 0
    """Versions, or where a format counts these, files that only old versions named."""
    orphan_count: int = 0

    def __add__(self, other: "MaintenanceResult") -> "MaintenanceResult":
        return MaintenanceResult(
            self.merged_count + other.merged_count,
            self.expired_count + other.expired_count,
            self.orphan_count + other.orphan_count,
        )


def maintain(
    table: Table,
    upkeep: MaintenanceOptions,
    time_column: str,
    *,
    encoding: Encoding,
    execute: Execute,
    clock: Callable[[], int],
) -> MaintenanceResult:
    """Do what is wanted for one table; there is nothing to do for one that does not exist."""
    done = MaintenanceResult()
    if upkeep.merges_files:
        done.merged_count = merge_files(table, time_column, encoding, execute)
    if upkeep.expires_after_ms is not None and (version := table.load()) is not None:
        try:
            done.expired_count = table.expire(version, clock() - upkeep.expires_after_ms)
        except CommitConflictError as error:
            log.info("old versions stay for now", table=table.name, reason=str(error))
    if (version := table.load()) is not None:
        orphans = table.orphans(version, clock() - ORPHAN_AGE_MS)
        table.files(version).discard(orphans)
        done.orphan_count = len(orphans)
    return done


# --- merging --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Small files of one partition that fit into one."""

    files: Files
    encoding: Encoding
    time_column: str
    members: tuple[DataFile, ...]


def merge_files(table: Table, time_column: str, encoding: Encoding, execute: Execute) -> int:
    """Put small files together; how many there were."""
    version = table.load()
    if version is None:
        return 0
    files = table.files(version)
    groups = [
        _Group(files, encoding, time_column, members)
        for members in small_groups(table.data_files(version), encoding.file_bytes)
    ]
    written = execute(groups, _merge, description="merging files") if groups else []
    count = 0
    for group, added in zip(groups, written, strict=True):
        if _replace(table, group.members, added):
            count += len(group.members)
        else:
            files.discard(added)
    return count


def small_groups(files: Sequence[DataFile], target_bytes: int) -> Iterator[tuple[DataFile, ...]]:
    """Files that are worth merging, in groups that make about one file of the target's size."""
    moments: dict[int | None, list[DataFile]] = defaultdict(list)
    for file in files:
        if file.size_bytes < target_bytes * 3 // 4 and _is_plain(file):
            moments[file.time_partition].append(file)
    for small in moments.values():
        group: list[DataFile] = []
        size_bytes = 0
        for file in sorted(small, key=lambda one: one.size_bytes):
            if group and size_bytes + file.size_bytes > target_bytes:
                break  # All that are left are larger, and so are nearly full.
            group.append(file)
            size_bytes += file.size_bytes
        if len(group) >= GROUP_MIN:
            yield tuple(group)


def _is_plain(file: DataFile) -> bool:
    """Whether a file is all there is to its rows; Iceberg may keep deletions apart."""
    return not getattr(file.details, "delete_files", None)


def _merge(group: _Group) -> list[DataFile]:
    writer = FileWriter(group.files, group.encoding)
    for file in group.members:
        for batch in group.files.read(file):
            writer.add(batch, batch.column(group.time_column))
    return list(writer.finish())


def _replace(table: Table, removed: Sequence[DataFile], added: Sequence[DataFile]) -> bool:
    """Exchange files, unless one of them is no longer there."""
    paths = {file.path for file in removed}
    for _ in range(COMMIT_ATTEMPTS_MAX):
        version = table.load()
        assert version is not None
        there = [file for file in table.data_files(version) if file.path in paths]
        if len(there) < len(paths):
            return False
        try:
            table.commit(version, Change(None, added, there, is_new_data=False))
        except CommitConflictError as error:
            log.info("another writer was faster", table=table.name, reason=str(error))
        else:
            return True
    return False
