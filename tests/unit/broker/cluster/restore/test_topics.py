"""Which topics there are: what metadata, catalog and records say, in all their contradictions."""

from collections import defaultdict

import pytest

from kafscale.broker.cluster.restore.topics import CATALOG_LATE_MS, Evidence
from kafscale.metadata.schema.model import Topic
from kafscale.storage.recovery.bucket_scan import FoundTopic, Inventory
from kafscale.storage.topic_catalog import Catalog, CatalogTopic

CLUSTER_ID = "ours"
OLD, NEW, NEWER = bytes(15) + b"\x01", bytes(15) + b"\x02", bytes(15) + b"\x03"
RANDOM = bytes(15) + b"\xff"
SNAPSHOT_REVISION, CATALOG_REVISION, SINCE_REVISION = 100, 200, 1 << 40
CATALOG_MS = 1_000_000
LONG_AGO_MS = CATALOG_MS - CATALOG_LATE_MS - 1


def known(topic_id=OLD, partitions=1, *, created=50, version=1, **configs):
    return Topic(
        name="t",
        id=topic_id,
        partitions=partitions,
        configs=configs,
        created_ms=7,
        version=version,
        create_revision=created,
        mod_revision=created,
    )


def listed(topic_id=OLD, partitions=1, version=1, **configs):
    return CatalogTopic("t", topic_id.hex(), partitions, configs, 7, version)


def catalog(*topics, revision=CATALOG_REVISION, cluster_id=CLUSTER_ID):
    return Catalog(topics, cluster_id=cluster_id, revision=revision)


def found(*, wal=(), objects=()):
    """What there is of a topic: (id, partition, date) in the WAL, (partition, date) else."""
    topic = FoundTopic.nothing()
    for topic_id, partition, modified_ms in wal:
        topic.in_wal[topic_id].note(partition, modified_ms)
    for partition, modified_ms in objects:
        topic.objects.note(partition, modified_ms)
    return topic


def judge(*, topic=None, tombstone=None, told=None, there=None):
    """What becomes of the topic: it and its tombstone, or `right` if all is as it should be."""
    inventory = Inventory(
        defaultdict(FoundTopic.nothing, {} if there is None else {"t": there}),
        {},
        told,
        CATALOG_MS if told else -1,
    )
    evidence = Evidence(
        topics={"t": topic} if topic else {},
        tombstones={"t": tombstone} if tombstone else {},
        known_revision=SNAPSHOT_REVISION,
        since_revision=SINCE_REVISION,
        inventory=inventory,
        cluster_id=CLUSTER_ID,
        namespace="default",
        now_ms=99,
        new_id=lambda: RANDOM,
    )
    verdicts = list(evidence.verdicts())
    if not verdicts:
        return "right"
    [verdict] = verdicts
    assert (verdict.before, verdict.tombstone_before) == (topic, tombstone)
    assert verdict.after is None or verdict.tombstone_after is None
    return verdict.after, verdict.tombstone_after


# --- the catalog knows ----------------------------------------------------------------------------


def test_what_all_agree_on_is_right():
    there = found(wal=[(OLD, 0, 1)], objects=[(0, 1)])
    assert judge(topic=known(), told=catalog(listed()), there=there) == "right"


def test_a_topic_that_came_is_made_again_as_it_was():
    after, _ = judge(told=catalog(listed(NEW, 3, 4, **{"retention.ms": "5"})))
    assert (after.id, after.partitions, after.version) == (NEW, 3, 4)
    assert (after.configs, after.created_ms) == ({"retention.ms": "5"}, 7)


def test_a_topic_that_grew_or_was_configured_is_changed():
    after, _ = judge(
        topic=known(a="1"), told=catalog(listed(OLD, 3, 2, a="2")), there=found(objects=[(0, 1)])
    )
    assert (after.id, after.partitions, after.configs, after.version) == (OLD, 3, {"a": "2"}, 2)
    assert after.create_revision == 50, "it is the same topic"


def test_a_catalog_that_is_older_changes_no_configuration():
    told = catalog(listed(OLD, 1, 1, a="1"))
    assert judge(topic=known(a="2", version=2), told=told) == "right"


def test_a_topic_that_went_is_deleted_again():
    for there in (None, found(wal=[(OLD, 0, CATALOG_MS)], objects=[(0, CATALOG_MS)])):
        assert judge(topic=known(), told=catalog(), there=there) == (None, known())


def test_a_topic_that_is_younger_than_the_catalog_stays():
    told = catalog(revision=40)
    assert judge(topic=known(created=50), told=told) == "right"


def test_a_topic_that_was_made_after_the_restoration_stays():
    assert judge(topic=known(created=SINCE_REVISION + 1), told=catalog()) == "right"


def test_a_topic_whose_name_was_taken_again_is_the_later_one():
    for topic in (known(OLD), known(OLD, created=SINCE_REVISION + 1)):
        after, _ = judge(topic=topic, told=catalog(listed(NEW, 2)))
        assert (after.id, after.partitions, after.create_revision) == (NEW, 2, 0)


def test_a_catalog_from_before_the_topic_does_not_replace_it():
    told = catalog(listed(OLD), revision=40)
    assert judge(topic=known(NEW, created=50), told=told) == "right"


def test_a_topic_of_an_old_catalog_that_the_snapshot_does_not_know_is_deleted():
    assert judge(told=catalog(listed(OLD), revision=SNAPSHOT_REVISION)) == "right"


# --- tombstones -----------------------------------------------------------------------------------


def test_a_tombstone_stays_until_its_topic_is_gone():
    for told in (None, catalog(), catalog(listed(OLD))):
        there = found(wal=[(OLD, 0, CATALOG_MS)], objects=[(0, CATALOG_MS)])
        assert judge(tombstone=known(OLD), told=told, there=there) == "right"


def test_a_tombstone_goes_if_the_name_was_taken_again():
    after, tombstone = judge(tombstone=known(OLD), told=catalog(listed(NEW)))
    assert (after.id, tombstone) == (NEW, None)
    after, tombstone = judge(
        tombstone=known(OLD), told=catalog(), there=found(wal=[(NEW, 0, CATALOG_MS)])
    )
    assert (after.id, tombstone) == (NEW, None)


def test_what_is_left_of_a_topic_that_came_and_went_gets_a_tombstone():
    after, tombstone = judge(told=catalog(), there=found(objects=[(2, LONG_AGO_MS)]))
    assert (after, tombstone.id, tombstone.partitions) == (None, RANDOM, 3)


def test_old_records_in_the_wal_alone_are_left_to_the_reaper():
    assert judge(told=catalog(), there=found(wal=[(NEW, 0, LONG_AGO_MS)])) == "right"


# --- only records know ----------------------------------------------------------------------------


def test_what_was_written_lately_is_not_deleted():
    for told in (catalog(), None):
        after, _ = judge(told=told, there=found(wal=[(NEW, 1, CATALOG_MS)], objects=[(3, 1)]))
        assert (after.id, after.partitions) == (NEW, 4)
        after, _ = judge(told=told, there=found(objects=[(1, CATALOG_MS)]))
        assert (after.id, after.partitions) == (RANDOM, 2)


def test_of_several_topics_that_had_the_name_the_last_one_is_made_again():
    there = found(wal=[(NEW, 7, CATALOG_MS + 1), (NEWER, 1, CATALOG_MS + 2)])
    after, _ = judge(told=catalog(), there=there)
    assert (after.id, after.partitions) == (NEWER, 2)
    after, _ = judge(topic=known(OLD), told=catalog(), there=there)
    assert after.id == NEWER


def test_a_topic_that_somebody_made_since_gives_way_to_the_one_that_there_are_records_of():
    made_since = known(NEW, created=SINCE_REVISION + 1)
    after, tombstone = judge(
        topic=made_since, told=catalog(), there=found(wal=[(OLD, 0, CATALOG_MS)])
    )
    assert (after.id, tombstone) == (OLD, None)
    for there in (
        found(wal=[(OLD, 0, CATALOG_MS), (NEW, 0, CATALOG_MS)]),
        found(wal=[(OLD, 0, LONG_AGO_MS)]),
        found(objects=[(0, CATALOG_MS)]),
    ):
        assert judge(topic=made_since, told=catalog(), there=there) == "right"


def test_partitions_that_the_catalog_does_not_list_yet_are_added():
    for told in (None, catalog(listed(OLD, 2))):
        after, _ = judge(topic=known(), told=told, there=found(wal=[(OLD, 4, CATALOG_MS)]))
        assert (after.id, after.partitions) == (OLD, 5)
        after, _ = judge(topic=known(), told=told, there=found(objects=[(3, CATALOG_MS)]))
        assert (after.id, after.partitions) == (OLD, 4)


# --- whom to believe ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [None, catalog(cluster_id="another"), catalog(cluster_id=""), catalog(revision=0)],
    ids=["none", "another cluster's", "nobody's", "at no time"],
)
def test_without_proof_nothing_is_deleted(told):
    assert judge(topic=known(), told=told) == "right"
    after, _ = judge(told=told, there=found(objects=[(0, 0)]))
    assert after is not None


def test_topics_of_another_clusters_catalog_are_made_but_replace_nothing():
    told = catalog(listed(NEW), cluster_id="another")
    assert judge(told=told)[0].id == NEW
    assert judge(topic=known(OLD), told=told) == "right"


def test_a_catalog_that_does_not_say_whose_it_is_is_believed_what_it_lists():
    told = catalog(listed(NEW), cluster_id="", revision=0)
    assert judge(told=told)[0].id == NEW
    assert judge(topic=known(OLD), told=told)[0].id == NEW


@pytest.mark.parametrize("topic_id", ["", "zz" * 16, "00"])
def test_what_is_no_id_is_no_topic(topic_id):
    assert judge(told=catalog(CatalogTopic("t", topic_id, 1))) == "right"
