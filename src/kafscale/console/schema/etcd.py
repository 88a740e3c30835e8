"""The members of etcd, and the snapshots of it."""

from kafscale.console.schema.base import Asked, View


class EtcdMember(View):
    name: str
    endpoint: str
    role: str | None
    version: str | None
    database_bytes: int | None
    used_bytes: int | None
    """What of its database is in use; the rest is given back by a defragmentation."""
    revision: int | None
    alarms: list[str]
    problem: str | None


class Snapshot(View):
    key: str
    taken_at: str
    age_seconds: int
    size_bytes: int
    revision: int
    etcd_version: str | None
    verified: str
    problem: str | None


class EtcdState(View):
    is_configured: bool
    """False on the embedded default, which keeps its metadata in a file."""
    members: list[EtcdMember]
    snapshots: list[Snapshot]
    """The newest first."""
    snapshots_at: str | None
    """The bucket and the prefix of the snapshots."""
    problem: str | None


class TakeSnapshot(Asked):
    retain: int = 0
    """Then keep only so many, the newest; 0 keeps all."""
