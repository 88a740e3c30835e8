"""Table maintenance: merges small files, expires old versions, removes orphaned files.

Invariants: merging changes neither rows nor progress, and replaces only files that it has read, so
that concurrent commits are kept; a group of files that another writer has replaced meanwhile is
skipped. Orphaned files are our files that no version references, and that are too old to belong to
a commit in progress.
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

logger = get_logger(__name__)

DAY_MS: Final = 24 * 3600 * 1000
ORPHAN_AGE_MS: Final = DAY_MS
GROUP_MIN: Final = 2


@dataclass(frozen=True, kw_only=True)
class MaintenanceOptions:
    """Which maintenance to do."""

    merges_files: bool = False
    expires_after_ms: int | None = None
    """The maximum age of versions; None keeps all."""

    @property
    def is_enabled(self) -> bool:
        return self.merges_files or self.expires_after_ms is not None


class MaintenanceResult(msgspec.Struct):
    merged_count: int = 0
    """The number of files that were merged into others."""
    expired_count: int = 0
    """The number of expired versions; for Delta, of files that only old versions referenced."""
    orphan_count: int = 0

    def __add__(self, other: "MaintenanceResult") -> "MaintenanceResult":
        return MaintenanceResult(
            self.merged_count + other.merged_count,
            self.expired_count + other.expired_count,
            self.orphan_count + other.orphan_count,
        )


def maintain(
    table: Table,
    options: MaintenanceOptions,
    time_column: str,
    *,
    encoding: Encoding,
    execute: Execute,
    clock: Callable[[], int],
) -> MaintenanceResult:
    """Maintain one table, if it exists."""
    result = MaintenanceResult()
    if options.merges_files:
        result.merged_count = merge_files(table, time_column, encoding, execute)
    if options.expires_after_ms is not None and (version := table.load()) is not None:
        try:
            result.expired_count = table.expire(version, clock() - options.expires_after_ms)
        except CommitConflictError as error:
            logger.info("table versions not expired", table=table.name, reason=str(error))
    if (version := table.load()) is not None:
        orphans = table.orphans(version, clock() - ORPHAN_AGE_MS)
        table.files(version).discard(orphans)
        result.orphan_count = len(orphans)
    return result


# --- merging --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Small files of one time partition that are merged into one."""

    files: Files
    encoding: Encoding
    time_column: str
    members: tuple[DataFile, ...]


def merge_files(table: Table, time_column: str, encoding: Encoding, execute: Execute) -> int:
    """Merge small files; return how many were merged."""
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
    """Group small files of a time partition into about one file of the target size each."""
    by_partition: dict[int | None, list[DataFile]] = defaultdict(list)
    for file in files:
        if file.size_bytes < target_bytes * 3 // 4 and _has_no_deletes(file):
            by_partition[file.time_partition].append(file)
    for small in by_partition.values():
        group: list[DataFile] = []
        size_bytes = 0
        for file in sorted(small, key=lambda file: file.size_bytes):
            if group and size_bytes + file.size_bytes > target_bytes:
                break  # The remaining files are larger, and nearly full.
            group.append(file)
            size_bytes += file.size_bytes
        if len(group) >= GROUP_MIN:
            yield tuple(group)


def _has_no_deletes(file: DataFile) -> bool:
    """Whether a file has no separate delete files, as Iceberg may have."""
    return not getattr(file.details, "delete_files", None)


def _merge(group: _Group) -> list[DataFile]:
    writer = FileWriter(group.files, group.encoding)
    for file in group.members:
        for batch in group.files.read(file):
            writer.add(batch, batch.column(group.time_column))
    return list(writer.finish())


def _replace(table: Table, removed: Sequence[DataFile], added: Sequence[DataFile]) -> bool:
    """Replace files, unless one of them is no longer part of the table."""
    paths = {file.path for file in removed}
    for _ in range(COMMIT_ATTEMPTS_MAX):
        version = table.load()
        assert version is not None
        existing = [file for file in table.data_files(version) if file.path in paths]
        if len(existing) < len(paths):
            return False
        try:
            table.commit(version, Change(None, added, existing, is_new_data=False))
        except CommitConflictError as error:
            logger.info("commit conflict, retrying", table=table.name, reason=str(error))
        else:
            return True
    return False
