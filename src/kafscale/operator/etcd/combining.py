"""What Kubernetes shows of a managed etcd and what its members say, brought together. Pure.

A seat in the list is known by its address, because a member that has never started has no name.
"""

from collections.abc import Mapping

from kafscale.metadata.store.etcd.maintenance import EtcdMember
from kafscale.operator.etcd.observe import Answers, Objects
from kafscale.operator.etcd.pods import has_volume, pod_view
from kafscale.operator.etcd.view import EtcdView, MemberView
from kafscale.operator.manifests.etcd import pods, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission
from kafscale.operator.manifests.etcd.restore import restore_of
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


def combined(
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    answers: Answers,
    *,
    admission: Admission,
    trust_checksum: str,
) -> EtcdView:
    """All that is known, but for how long members have been silent."""
    wanted = cluster.spec.etcd.managed.replicas
    seats, strangers = _seats(cluster, platform, answers)
    count = max([wanted, *(index + 1 for index in seats)])
    template = pods.template(
        cluster, platform, trust_checksum=trust_checksum, restore=restore_of(admission)
    )
    return EtcdView(
        wanted=wanted,
        members=tuple(
            _member(cluster, platform, objects, answers, index=index, seat=seats.get(index))
            for index in range(count)
        ),
        admission=admission,
        checksum=pods.checksum(template),
        is_listed=answers.listed is not None,
        strangers=strangers,
        alarms=tuple(answers.alarms),
        defragments=cluster.spec.etcd.managed.defragment,
    )


def _seats(
    cluster: Cluster, platform: Platform, answers: Answers
) -> tuple[Mapping[int, EtcdMember], tuple[EtcdMember, ...]]:
    """The seats by the numbers of their members, and those of strangers."""
    listed = {url: each for each in answers.listed or () for url in each.peer_urls}
    seats: dict[int, EtcdMember] = {}
    for index in range(stateful_set.COUNT_MAX):
        seat = listed.get(stateful_set.peer_url(cluster, platform, index))
        if seat:
            seats[index] = seat
    ours = {each.id for each in seats.values()}
    return seats, tuple(each for each in answers.listed or () if each.id not in ours)


def _member(
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    answers: Answers,
    *,
    index: int,
    seat: EtcdMember | None,
) -> MemberView:
    name = stateful_set.name(cluster, index)
    pod = objects.pods.get(name)
    return MemberView(
        index=index,
        name=name,
        peer_url=stateful_set.peer_url(cluster, platform, index),
        seat=seat,
        status=answers.statuses.get(stateful_set.client_url(cluster, platform, index)),
        pod=pod_view(pod) if pod else None,
        has_volume=has_volume(objects.claims.get(stateful_set.volume_claim(cluster, index))),
    )
