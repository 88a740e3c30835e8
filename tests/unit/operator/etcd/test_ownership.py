"""Whose an etcd is: who was there first has it."""

from kafscale.operator.etcd.ownership import holder
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import read_cluster

SPEC = {"brokers": {}, "s3": {"bucket": "records"}}


def body(name, created_at="2026-01-01T00:00:00Z", *, spec=SPEC):
    metadata = {"name": name, "namespace": "shops", "uid": f"uid-of-{name}"}
    return {"metadata": metadata | {"creationTimestamp": created_at}, "spec": spec}


def held(ours, *others, endpoints=("a:2379", "b:2379"), of=("b:2379", "c:2379"), managed=False):
    """Who has one of our endpoints, where all others use those of `of`."""
    access = EtcdAccess(endpoints=of, is_managed=managed)
    return holder(read_cluster(ours), endpoints, [ours, *others], lambda _: access)


LATER = "2026-01-02T00:00:00Z"


def test_the_first_that_names_it_has_it():
    first, second = body("z-first"), body("a-second", LATER)
    assert held(second, first) == "shops/z-first"
    assert held(first, second) == ""
    assert held(first) == ""


def test_of_two_from_the_same_second_their_names_decide():
    assert held(body("a"), body("b")) == ""
    assert held(body("b"), body("a")) == "shops/a"


def test_who_uses_another_one_takes_nothing():
    assert held(body("b"), body("a"), of=("c:2379",)) == ""
    assert held(body("b"), body("a"), managed=True) == ""


def test_one_that_nobody_looks_after_takes_nothing():
    assert held(body("b"), body("a", spec={"brokers": 7})) == ""
