"""Whole clusters, as Kubernetes is told of them: golden files that a person has read.

`pytest --rewrite-golden tests/unit/operator/manifests` writes them anew; `git diff` shows what a
change means for clusters that run already.
"""

import pytest

from kafscale.operator.kube.kinds import kind_of
from kafscale.operator.manifests.brokers import config_map
from unit.operator.manifests.clusters import CASES, PLATFORM, case, manifests

every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_a_cluster_is_made_of_these_manifests(name, golden):
    golden(name, manifests(*case(name)))


@every_case
def test_the_settings_of_a_golden_cluster_are_right(name):
    cluster, etcd = case(name)
    assert config_map.problems(cluster, PLATFORM, etcd) == []


@every_case
def test_every_manifest_is_of_a_kind_that_the_operator_knows_and_goes_with_its_cluster(name):
    cluster, etcd = case(name)
    for manifest in manifests(cluster, etcd):
        assert kind_of(manifest)
        assert manifest["metadata"]["namespace"] == cluster.namespace
        [owner] = manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (cluster.uid, True)


def test_no_two_manifests_are_the_same_object():
    made = manifests(*case("everything"))
    assert len({(each["kind"], each["metadata"]["name"]) for each in made}) == len(made)
