"""How an etcd is, in words."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.store.etcd.maintenance import Alarm
from kafscale.operator.etcd.health import conditions, given_conditions
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
from unit.operator.etcd.views import crashing, member, seat, silent, view


def told(seen):
    return {each.type: each for each in conditions(seen)}


def test_all_is_well():
    found = told(view())
    assert {each.status for each in found.values()} == {"True"}
    assert found["EtcdReady"].message == "3 of 3 members are healthy"


def test_one_of_three_may_be_away():
    found = told(view(member(0), crashing(1), member(2)))
    assert found["EtcdReady"].status == "True"
    assert found["EtcdMembersHealthy"].status == "False"
    assert found["EtcdMembersHealthy"].message == "e-1: it does not start: no such file"


@pytest.mark.parametrize(
    ("unwell", "words"),
    [
        (silent(1), "it does not answer"),
        (silent(1, seat=None), "it is no member yet"),
        (member(1, seat=seat(1, is_learner=True)), "it has come back, and catches up"),
    ],
)
def test_it_is_said_what_is_wrong_with_a_member(unwell, words):
    found = told(view(member(0), unwell, member(2)))
    assert found["EtcdMembersHealthy"].message == f"e-1: {words}"


def test_without_most_members_it_is_of_no_use():
    seen = view(member(0), crashing(1), silent(2), is_listed=False)
    found = told(seen)["EtcdReady"]
    assert (found.status, found.reason) == ("False", "NoQuorum")
    assert "e-1 ended: no such file" in found.message
    assert "restoreFrom" in found.message
    forming = told(replace(seen, admission=Admission(Door.FORMING)))["EtcdReady"]
    assert forming.reason == "Forming"


def test_strangers_count_for_the_majority_and_are_told_of():
    seen = view(member(0), member(1), strangers=(seat(8), seat(9)))
    assert told(seen)["EtcdReady"].status == "False"
    assert "e-8, e-9" in told(seen)["EtcdMembersHealthy"].message


def test_a_full_database_is_told_of():
    found = told(view(alarms=(Alarm(101, "NOSPACE"),)))["EtcdSpace"]
    assert (found.status, found.reason) == ("False", "QuotaReached")


def test_one_endpoint_that_answers_is_enough_of_an_etcd_that_is_given():
    [good] = given_conditions(1, ["a:1", "b:1"], "")
    assert (good.status, good.message) == ("True", "1 of 2 endpoints answer")
    [poor] = given_conditions(0, ["a:1"], "refused")
    assert (poor.status, poor.message) == ("False", "0 of 1 endpoints answer: refused")
