"""What comes first, who may begin, how many pods there are, and which is restarted."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.actions import Admit, Defragment, MakeRoom, Remove, Restart
from kafscale.operator.etcd.plan import admission, plan, replicas
from kafscale.operator.etcd.view import PodView
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
from unit.operator.etcd.test_defragmentation import large
from unit.operator.etcd.views import OLD, crashing, member, seat, silent, view

FORMING = Admission(Door.FORMING, "all", "key")


def old(index, **more):
    pod = PodView(uid=f"uid-{index}", checksum=OLD, is_ready=True)
    return member(index, pod=replace(pod, **more))


def test_a_healthy_cluster_is_left_alone():
    assert plan(view()) is None


def test_while_the_cluster_forms_it_is_left_alone():
    seen = view(large(0), crashing(1), member(2), admission=FORMING)
    assert plan(seen) is None


def test_room_to_write_comes_before_repair_and_repair_before_restarts_and_these_before_size():
    full = Alarm(100, "NOSPACE")
    lost = view(old(0), crashing(1), old(2), alarms=(full,))
    assert isinstance(plan(lost), MakeRoom)
    assert plan(view(large(0), silent(1, has_volume=False), old(2))) == Remove(
        1, 101, "its volume is gone"
    )
    assert plan(view(large(0), old(1), old(2))) == Restart(2, "uid-2")
    assert plan(view(large(0), member(1), member(2))) == Defragment(0)


def test_pods_are_restarted_one_by_one_the_leaders_last():
    assert plan(view(old(0), old(1), old(2))) == Restart(2, "uid-2")
    assert plan(view(old(0), old(1), member(2))) == Restart(1, "uid-1")
    assert plan(view(old(0), member(1), member(2))) == Restart(0, "uid-0")


@pytest.mark.parametrize(
    "other", [silent(2), old(2, is_ready=False), old(2, is_terminating=True, is_ready=False)]
)
def test_no_pod_is_restarted_while_another_is_away(other):
    assert plan(view(old(0), old(1), other)) is None


def test_a_pod_that_is_of_no_use_and_out_of_date_is_restarted_whoever_else_is_away():
    useless = silent(1, PodView(uid="uid-1", checksum=OLD))
    for seen in (
        view(silent(0), useless, silent(2), is_listed=False),
        view(silent(0), useless, silent(2), is_listed=False, admission=FORMING),
    ):
        assert plan(seen) == Restart(1, "uid-1")
    slow = silent(1, PodView(uid="uid-1", checksum=OLD, is_ready=True))
    assert plan(view(silent(0), slow, silent(2), is_listed=False)) is None


def test_the_door_is_closed_when_all_have_been_seen():
    closed = Admission(Door.CLOSED, "", "key")
    assert admission(view(admission=FORMING), "list") == closed
    unseen = member(2, seat=seat(2, client_urls=()))
    assert admission(view(member(0), member(1), unseen, admission=FORMING), "list") == FORMING
    absent = view(member(0), member(1), silent(2), admission=FORMING)
    assert admission(absent, "list") == FORMING
    nobody = view(silent(0, seat=None), is_listed=False, admission=FORMING)
    assert admission(nobody, "") == FORMING


def test_the_door_is_open_for_one_that_has_never_started():
    newcomer = silent(1, seat=seat(1, name="", client_urls=(), is_learner=True))
    seen = view(member(0), newcomer, member(2))
    opened = Admission(Door.OPEN, "list")
    assert admission(seen, "list") == opened
    learner = member(1, seat=seat(1, is_learner=True))
    assert admission(view(member(0), learner, admission=opened), "list") == Admission(Door.CLOSED)


def test_without_a_list_the_door_stays_as_it_is():
    for said in (Admission(Door.CLOSED), Admission(Door.OPEN, "list")):
        seen = view(silent(0, seat=None), is_listed=False, admission=said)
        assert admission(seen, "") == said


def test_a_member_that_lost_its_data_does_not_open_the_door():
    seen = view(member(0), crashing(1), member(2))
    assert admission(seen, "list").door is Door.CLOSED
    gone = view(member(0), crashing(1, seat=None), member(2))
    assert admission(gone, "list").door is Door.CLOSED
    assert plan(gone) == Admit(1)


def test_pods_stay_until_their_members_have_left():
    assert replicas(view(wanted=1), 3) == 3
    assert replicas(view(member(0), wanted=1), 3) == 1
    assert replicas(view(member(0), silent(1, seat=None), silent(2, seat=None)), 1) == 3
    assert replicas(view(member(0), wanted=1, is_listed=False), 3) == 3
    assert replicas(view(silent(0, seat=None), is_listed=False), 0) == 1
