"""What is left of a former cluster of the same name is told from what is ours."""

import pytest

from kafscale.operator.etcd.leftovers import remains
from kafscale.operator.etcd.observe import Objects

OURS, FORMER = "uid-of-ours", "uid-of-the-former"
SET_UID = "uid-of-the-set"


def made(kind, name, owner="", uid="u"):
    references = [{"uid": owner, "controller": True}] if owner else []
    return {"kind": kind, "metadata": {"name": name, "uid": uid, "ownerReferences": references}}


def objects(**found):
    everything = {
        "admission": made("ConfigMap", "e-admission", OURS),
        "stateful_set": made("StatefulSet", "e", OURS, SET_UID),
        "pods": {"e-0": made("", "e-0", SET_UID)},
        "claims": {"data-e-0": made("PersistentVolumeClaim", "data-e-0")},
        "secrets": {"e-tls": made("Secret", "e-tls", OURS)},
    }
    return Objects(**(everything | found))


def test_what_is_ours_and_what_is_nobodys_is_no_remains():
    assert remains(objects(), OURS) == []
    orphans = objects(
        admission=made("ConfigMap", "e-admission"),
        stateful_set=made("StatefulSet", "e"),
        pods={"e-0": made("", "e-0")},
        secrets={"e-tls": made("Secret", "e-tls")},
    )
    assert remains(orphans, OURS) == []
    assert remains(objects(admission=None, stateful_set=None, pods={}, secrets={}), OURS) == []


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ({"admission": made("ConfigMap", "e-admission", FORMER)}, "ConfigMap e-admission"),
        ({"stateful_set": made("StatefulSet", "e", FORMER, SET_UID)}, "StatefulSet e"),
        ({"secrets": {"e-tls": made("Secret", "e-tls", FORMER)}}, "Secret e-tls"),
        ({"pods": {"e-0": made("", "e-0", "uid-of-the-former-set")}}, "Pod e-0"),
        ({"stateful_set": None}, "Pod e-0"),
    ],
)
def test_what_belongs_to_another_is(found, left):
    assert remains(objects(**found), OURS) == [left]
