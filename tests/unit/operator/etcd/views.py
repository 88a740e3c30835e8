"""Managed etcds to decide about: three members in good health, and what may be wrong with them."""

from typing import Any

from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import EtcdMember, MemberStatus
from kafscale.operator.etcd.view import EtcdView, MemberView, PodView
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door

NEW, OLD = "new", "old"
"""Checksums of pods."""
LEADER_ID = 100


def seat(index: int, **more: Any) -> EtcdMember:
    return replace(
        EtcdMember(100 + index, f"e-{index}", (f"https://e-{index}:2380",), ("https://e:2379",)),
        **more,
    )


def status(index: int, **more: Any) -> MemberStatus:
    return replace(MemberStatus("3.6.5", 1000, 900, LEADER_ID, 100 + index, 7, 42), **more)


def member(index: int, **more: Any) -> MemberView:
    """One in good health; the first leads."""
    well = MemberView(
        index=index,
        name=f"e-{index}",
        peer_url=f"https://e-{index}:2380",
        seat=seat(index),
        status=status(index),
        pod=PodView(uid=f"uid-{index}", checksum=NEW, is_ready=True),
        has_volume=True,
    )
    return replace(well, **more)


def silent(index: int, pod: PodView | None = None, **more: Any) -> MemberView:
    """One that does not answer, and whose pod is not ready."""
    pod = pod or PodView(uid=f"uid-{index}", checksum=NEW)
    return replace(member(index, status=None, pod=pod), **more)


def crashing(index: int, **more: Any) -> MemberView:
    """One whose pod has been started in vain for an hour."""
    pod = PodView(uid=f"uid-{index}", checksum=NEW, is_crashing=True, reason="no such file")
    return silent(index, pod, **{"silent_ms": 3_600_000, **more})


def view(*members: MemberView, **more: Any) -> EtcdView:
    """Three members, or these, and nothing left to do unless it is said."""
    found = members or (member(0), member(1), member(2))
    well = EtcdView(
        wanted=len(found),
        members=found,
        admission=Admission(Door.CLOSED),
        checksum=NEW,
        is_listed=True,
    )
    return replace(well, **more)
