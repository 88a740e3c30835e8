"""Views of managed etcds: three healthy members, and variations with problems."""

from typing import Any

from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import EtcdMember, MemberStatus
from kafscale.operator.etcd.view import EtcdView, MemberView, PodView
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode

NEW, OLD = "new", "old"
"""Checksums of pods."""
LEADER_ID = 100


def entry(index: int, **more: Any) -> EtcdMember:
    return replace(
        EtcdMember(100 + index, f"e-{index}", (f"https://e-{index}:2380",), ("https://e:2379",)),
        **more,
    )


def status(index: int, **more: Any) -> MemberStatus:
    return replace(MemberStatus("3.6.5", 1000, 900, LEADER_ID, 100 + index, 7, 42), **more)


def member(index: int, **more: Any) -> MemberView:
    """A healthy member; the first one is the leader."""
    healthy = MemberView(
        index=index,
        name=f"e-{index}",
        peer_url=f"https://e-{index}:2380",
        entry=entry(index),
        status=status(index),
        pod=PodView(uid=f"uid-{index}", checksum=NEW, is_ready=True),
        has_volume=True,
    )
    return replace(healthy, **more)


def unresponsive(index: int, pod: PodView | None = None, **more: Any) -> MemberView:
    """A member that does not respond, and whose pod is not ready."""
    pod = pod or PodView(uid=f"uid-{index}", checksum=NEW)
    return replace(member(index, status=None, pod=pod), **more)


def crashing(index: int, **more: Any) -> MemberView:
    """A member whose pod has been crashing for an hour."""
    pod = PodView(uid=f"uid-{index}", checksum=NEW, is_crashing=True, reason="no such file")
    return unresponsive(index, pod, **{"unresponsive_ms": 3_600_000, **more})


def view(*members: MemberView, **more: Any) -> EtcdView:
    """Three members, or these, with nothing left to do by default."""
    observed = members or (member(0), member(1), member(2))
    healthy = EtcdView(
        desired=len(observed),
        members=observed,
        bootstrap=BootstrapConfig(BootstrapMode.FORMED),
        checksum=NEW,
        has_member_list=True,
    )
    return replace(healthy, **more)
