"""Members of etcd, and snapshots."""

from kafscale.console.schema.base import RequestModel, ResponseModel


class EtcdMember(ResponseModel):
    name: str
    endpoint: str
    role: str | None
    version: str | None
    database_bytes: int | None
    used_bytes: int | None
    """The used part of the database; defragmentation frees the rest."""
    revision: int | None
    alarms: list[str]
    problem: str | None


class Snapshot(ResponseModel, kw_only=True):
    key: str
    taken_at: str
    age_seconds: int
    size_bytes: int
    revision: int
    etcd_version: str | None = None
    verified: str
    problem: str | None = None


class EtcdState(ResponseModel):
    is_configured: bool
    """False for the embedded store, which keeps its metadata in a file."""
    members: list[EtcdMember]
    snapshots: list[Snapshot]
    """Newest first."""
    snapshots_at: str | None
    """The bucket and the prefix of the snapshots."""
    problem: str | None


class TakeSnapshot(RequestModel):
    retain: int = 0
    """How many snapshots to keep, the newest; 0 keeps all."""
