"""What `kafscale etcd restore` does, from a key, a name or a file to the data of a member."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafscale.admin.etcd.backups import object_keys as snapshot_keys
from kafscale.admin.etcd.backups.location import SnapshotLocation, open_snapshots
from kafscale.aio.clock import clock
from kafscale.cli.commands.config import effective
from kafscale.cli.commands.etcd.access import run
from kafscale.errors import KafscaleError
from kafscale.operator.etcd import restore as etcd_restore
from kafscale.operator.etcd.restore import Identity

Progress = Callable[[int, int], None]

PROGRAM: Final = "etcdutl"


def restore(
    wanted: str,
    directory: Path,
    identity: Identity,
    place: SnapshotLocation,
    *,
    force: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Make a member's data from a snapshot; what came of it."""
    if etcd_restore.has_data(directory) and not force:
        raise KafscaleError(
            f"{directory} has data already: name another directory, say --if-empty to leave it as"
            " it is, or --force to move it aside"
        )
    program = shutil.which(PROGRAM)
    if program is None:
        raise KafscaleError(
            f"there is no {PROGRAM} on the PATH: it comes with etcd; version 3.6 or later is best"
        )
    moved = f"replaced-{snapshot_keys.stamp(clock())}" if etcd_restore.has_member(directory) else ""
    with etcd_restore.staging(directory) as room:
        snapshot, told = _snapshot(wanted, place, room, progress)
        leapt = etcd_restore.restore(program, snapshot, directory, room, identity, moved_to=moved)
    return {
        "restored": True,
        "dataDirectory": str(directory),
        **told,
        "revisionHasLeapt": leapt,
        "movedAside": str(directory / moved) if moved else None,
    }


def left_alone(directory: Path) -> dict[str, Any]:
    """What is told of a directory that has data already."""
    return {"restored": False, "dataDirectory": str(directory), "reason": "it has data already"}


def _snapshot(
    wanted: str, place: SnapshotLocation, room: Path, progress: Progress
) -> tuple[Path, dict[str, Any]]:
    """A snapshot as a file that is whole, and what is known about it."""
    file = Path(wanted)
    if wanted != snapshot_keys.LATEST and file.is_file():
        etcd_restore.check_file(file)
        return file, {"snapshot": str(file), "takenAt": None, "revision": None}
    if file.is_absolute() or wanted.startswith("."):
        raise KafscaleError(f"there is no file {wanted}")
    return run(_fetched(wanted, place, room / "snapshot.db", progress))


async def _fetched(
    wanted: str, place: SnapshotLocation, path: Path, progress: Progress
) -> tuple[Path, dict[str, Any]]:
    async with open_snapshots(effective(), place) as snapshots:
        key = await snapshots.find(wanted)
        description = await snapshots.fetch(key, path, progress)
    told = {"snapshot": key, "takenAt": description.taken_at, "revision": description.revision}
    return path, told
