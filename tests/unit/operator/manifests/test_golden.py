"""Tests of whole clusters against golden files that were reviewed.

`pytest --rewrite-golden tests/unit/operator/manifests` rewrites them; `git diff` then shows what a
change means for existing clusters.
"""

import pytest

from kafscale.operator.kube.api import kind_of
from kafscale.operator.manifests.brokers import config_map
from unit.operator.manifests.clusters import CASES, PLATFORM, case, manifests

every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_manifests_match_the_golden_file(name, golden):
    golden(name, manifests(*case(name)))


@every_case
def test_settings_of_golden_clusters_are_valid(name):
    cluster, etcd = case(name)
    assert config_map.problems(cluster, PLATFORM, etcd) == []


@every_case
def test_manifests_have_a_known_kind_and_owner(name):
    cluster, etcd = case(name)
    for manifest in manifests(cluster, etcd):
        assert kind_of(manifest)
        assert manifest["metadata"]["namespace"] == cluster.namespace
        [owner] = manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (cluster.uid, True)


def test_manifests_are_unique():
    objects = manifests(*case("everything"))
    assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)
