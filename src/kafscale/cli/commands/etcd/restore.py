"""`kafscale etcd restore`: creates the data directory of a member from a snapshot."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafscale.admin.etcd.backups import snapshot_format as snapshot_keys
from kafscale.admin.etcd.backups.listing import SnapshotLocation, open_snapshots
from kafscale.aio.clock import clock
from kafscale.cli.commands.config import load_config
from kafscale.cli.commands.etcd.access import run
from kafscale.errors import KafscaleError
from kafscale.operator.etcd import restore as etcd_restore
from kafscale.operator.etcd.restore import Identity

Progress = Callable[[int, int], None]

PROGRAM: Final = "etcdutl"


def restore(
    snapshot: str,
    directory: Path,
    identity: Identity,
    location: SnapshotLocation,
    *,
    force: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Restore a snapshot, named by key, `latest` or file; return the result to print."""
    if etcd_restore.has_data(directory) and not force:
        raise KafscaleError(
            f"{directory} already contains data: name another directory, use --if-empty to keep the"
            " data, or --force to move it aside"
        )
    program = shutil.which(PROGRAM)
    if program is None:
        raise KafscaleError(
            f"{PROGRAM} is not on the PATH: it comes with etcd; version 3.6 or later is recommended"
        )
    moved = f"replaced-{snapshot_keys.stamp(clock())}" if etcd_restore.has_member(directory) else ""
    with etcd_restore.staging(directory) as staging:
        file, info = _open_snapshot(snapshot, location, staging, progress)
        has_leapt = etcd_restore.restore(
            program, file, directory, staging, identity, moved_to=moved
        )
    return {
        "restored": True,
        "dataDirectory": str(directory),
        **info,
        "revisionHasLeapt": has_leapt,
        "movedAside": str(directory / moved) if moved else None,
    }


def skipped_result(directory: Path) -> dict[str, Any]:
    """The result for a directory that already contains data."""
    return {
        "restored": False,
        "dataDirectory": str(directory),
        "reason": "it already contains data",
    }


def _open_snapshot(
    snapshot: str, location: SnapshotLocation, staging: Path, progress: Progress
) -> tuple[Path, dict[str, Any]]:
    """The snapshot as a verified file, and its properties."""
    file = Path(snapshot)
    if snapshot != snapshot_keys.LATEST and file.is_file():
        etcd_restore.check_file(file)
        return file, {"snapshot": str(file), "takenAt": None, "revision": None}
    if file.is_absolute() or snapshot.startswith("."):
        raise KafscaleError(f"there is no file {snapshot}")
    return run(_download(snapshot, location, staging / "snapshot.db", progress))


async def _download(
    snapshot: str, location: SnapshotLocation, path: Path, progress: Progress
) -> tuple[Path, dict[str, Any]]:
    async with open_snapshots(load_config(), location) as snapshots:
        key = await snapshots.find(snapshot)
        description = await snapshots.fetch(key, path, progress)
    info = {"snapshot": key, "takenAt": description.taken_at, "revision": description.revision}
    return path, info
