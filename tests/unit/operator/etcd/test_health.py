"""Tests of the conditions of an etcd."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.health import conditions, external_conditions
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from unit.operator.etcd.views import crashing, entry, member, unresponsive, view


def by_type(state):
    return {each.type: each for each in conditions(state)}


def test_healthy_etcd():
    reported = by_type(view())
    assert {each.status for each in reported.values()} == {"True"}
    assert reported["EtcdReady"].message == "3 of 3 members are healthy"


def test_one_of_three_members_may_be_unavailable():
    reported = by_type(view(member(0), crashing(1), member(2)))
    assert reported["EtcdReady"].status == "True"
    assert reported["EtcdMembersHealthy"].status == "False"
    assert reported["EtcdMembersHealthy"].message == "e-1: it does not start: no such file"


@pytest.mark.parametrize(
    ("unhealthy", "message"),
    [
        (unresponsive(1), "not responding"),
        (unresponsive(1, entry=None), "not a member yet"),
        (member(1, entry=entry(1, is_learner=True)), "a learner that is catching up"),
    ],
)
def test_message_says_what_is_wrong_with_a_member(unhealthy, message):
    reported = by_type(view(member(0), unhealthy, member(2)))
    assert reported["EtcdMembersHealthy"].message == f"e-1: {message}"


def test_not_ready_without_a_quorum():
    state = view(member(0), crashing(1), unresponsive(2), has_member_list=False)
    reported = by_type(state)["EtcdReady"]
    assert (reported.status, reported.reason) == ("False", "NoQuorum")
    assert "e-1 failed: no such file" in reported.message
    assert "restoreFrom" in reported.message
    forming = by_type(replace(state, bootstrap=BootstrapConfig(BootstrapMode.FORMING)))["EtcdReady"]
    assert forming.reason == "Forming"


def test_unknown_members_count_for_the_quorum_and_are_reported():
    state = view(member(0), member(1), unknown_members=(entry(8), entry(9)))
    assert by_type(state)["EtcdReady"].status == "False"
    assert "e-8, e-9" in by_type(state)["EtcdMembersHealthy"].message


def test_full_database_is_reported():
    reported = by_type(view(alarms=(Alarm(101, "NOSPACE"),)))["EtcdSpace"]
    assert (reported.status, reported.reason) == ("False", "QuotaReached")


def test_external_etcd_is_ready_with_one_responding_endpoint():
    [ready] = external_conditions(1, ["a:1", "b:1"], "")
    assert (ready.status, ready.message) == ("True", "1 of 2 endpoints respond")
    [unready] = external_conditions(0, ["a:1"], "refused")
    assert (unready.status, unready.message) == ("False", "0 of 1 endpoints respond: refused")
