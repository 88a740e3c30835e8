"""What Kubernetes shows and what members say, brought together."""

from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus
from kafscale.operator.etcd.combining import combined
from kafscale.operator.etcd.observe import Answers, Objects
from kafscale.operator.manifests.etcd import stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
from kafscale.operator.manifests.names import Platform
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform()
CLUSTER = cluster({"brokers": {}, "s3": {"bucket": "records"}}, "shop")
STATUS = MemberStatus("3.6.5", 2, 1, 11, 11, 7, 42)


def seat(index, number=11, **more):
    url = stateful_set.peer_url(CLUSTER, PLATFORM, index)
    return EtcdMember(number, "", (url,), **more)


def seen(listed=None, *, pods=(), claims=(), statuses=None, alarms=()):
    objects = Objects(
        admission=None,
        stateful_set=None,
        pods={name: {"metadata": {"name": name, "uid": f"uid of {name}"}} for name in pods},
        claims={name: {"metadata": {"name": name}} for name in claims},
        secrets={},
    )
    answers = Answers(statuses or {}, {}, listed, alarms)
    said = Admission(Door.CLOSED)
    return combined(CLUSTER, PLATFORM, objects, answers, admission=said, trust_checksum="t")


def test_before_anything_is_there_there_are_three_empty_places():
    found = seen()
    assert [each.name for each in found.members] == ["shop-etcd-0", "shop-etcd-1", "shop-etcd-2"]
    assert found.healthy == found.seated == []
    assert not found.is_listed
    assert not any(each.has_volume or each.pod for each in found.members)


def test_each_member_has_its_seat_its_answer_its_pod_and_its_volume():
    url = stateful_set.client_url(CLUSTER, PLATFORM, 1)
    alarm = Alarm(11, "NOSPACE")
    found = seen(
        [seat(1)],
        pods=["shop-etcd-1"],
        claims=["data-shop-etcd-1"],
        statuses={url: STATUS},
        alarms=[alarm],
    )
    _, one, _ = found.members
    assert one.seat == seat(1)
    assert one.status == STATUS
    assert one.has_volume
    assert one.pod
    assert one.pod.uid == "uid of shop-etcd-1"
    assert one.pod.checksum != found.checksum
    assert one.is_healthy
    assert found.seated == [one]
    assert found.alarms == (alarm,)


def test_members_that_are_not_wanted_are_seen_as_long_as_they_are_in_the_list():
    found = seen([seat(4)])
    assert len(found.members) == 5
    assert found.wanted == 3


def test_who_is_none_of_ours_is_a_stranger():
    stranger = EtcdMember(9, "who", ("https://elsewhere:2380",))
    found = seen([seat(0), stranger, EtcdMember(8, "", ())])
    assert [each.id for each in found.strangers] == [9, 8]
    assert len(found.seated) == 1
