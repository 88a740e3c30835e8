"""Which topics exist, for all contradictions of metadata, catalog and records."""

from collections import defaultdict

import pytest

from kafscale.broker.cluster.restore.topics import CATALOG_LATE_MS, TopicEvidence
from kafscale.metadata.schema.model import Topic
from kafscale.storage.recovery.bucket_scan import BucketScan, TopicScan
from kafscale.storage.topic_catalog import Catalog, CatalogTopic

CLUSTER_ID = "ours"
OLD, NEW, NEWER = bytes(15) + b"\x01", bytes(15) + b"\x02", bytes(15) + b"\x03"
RANDOM = bytes(15) + b"\xff"
SNAPSHOT_REVISION, CATALOG_REVISION, SINCE_REVISION = 100, 200, 1 << 40
CATALOG_MS = 1_000_000
LONG_AGO_MS = CATALOG_MS - CATALOG_LATE_MS - 1


def topic_of(topic_id=OLD, partitions=1, *, created=50, version=1, **configs):
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


def catalog(*topics, revision=CATALOG_REVISION, cluster_id=CLUSTER_ID, deleted=()):
    return Catalog(
        topics,
        cluster_id=cluster_id,
        revision=revision,
        deleted_topic_ids=tuple(topic_id.hex() for topic_id in deleted),
    )


def scanned(*, wal=(), objects=()):
    """The scan of a topic: (id, partition, date) in the WAL, (partition, date) of objects."""
    topic = TopicScan.empty()
    for topic_id, partition, modified_ms in wal:
        topic.in_wal[topic_id].add(partition, modified_ms)
    for partition, modified_ms in objects:
        topic.objects["t"].add(partition, modified_ms)
    return topic


def evidence_of(
    *, topic=None, tombstone=None, catalog_object=None, scan=None, known_revision=SNAPSHOT_REVISION
):
    inventory = BucketScan(
        defaultdict(TopicScan.empty, {} if scan is None else {"t": scan}),
        {},
        catalog_object,
        CATALOG_MS if catalog_object else -1,
    )
    return TopicEvidence(
        topics={"t": topic} if topic else {},
        tombstones={"t": tombstone} if tombstone else {},
        known_revision=known_revision,
        since_revision=SINCE_REVISION,
        inventory=inventory,
        cluster_id=CLUSTER_ID,
        namespace="default",
        now_ms=99,
        new_id=lambda: RANDOM,
    )


def repair(*, topic=None, tombstone=None, **sources):
    """The repaired topic and its tombstone, or `unchanged`."""
    repairs = list(evidence_of(topic=topic, tombstone=tombstone, **sources).repairs())
    if not repairs:
        return "unchanged"
    [result] = repairs
    assert (result.before, result.tombstone_before) == (topic, tombstone)
    if result.after is not None and result.tombstone_after is not None:
        assert result.after.id_in_keys
        assert result.tombstone_after.emptied_ms
    return result.after, result.tombstone_after


# --- topics known to the catalog ------------------------------------------------------------------


def test_agreeing_sources_change_nothing():
    scan = scanned(wal=[(OLD, 0, 1)], objects=[(0, 1)])
    assert repair(topic=topic_of(), catalog_object=catalog(listed()), scan=scan) == "unchanged"


def test_created_topic_is_recreated_from_the_catalog():
    after, _ = repair(catalog_object=catalog(listed(NEW, 3, 4, **{"retention.ms": "5"})))
    assert (after.id, after.partitions, after.version) == (NEW, 3, 4)
    assert (after.configs, after.created_ms) == ({"retention.ms": "5"}, 7)


def test_grown_or_reconfigured_topic_is_updated():
    after, _ = repair(
        topic=topic_of(a="1"),
        catalog_object=catalog(listed(OLD, 3, 2, a="2")),
        scan=scanned(objects=[(0, 1)]),
    )
    assert (after.id, after.partitions, after.configs, after.version) == (OLD, 3, {"a": "2"}, 2)
    assert after.create_revision == 50, "it is the same topic"


def test_older_catalog_changes_no_configs():
    catalog_object = catalog(listed(OLD, 1, 1, a="1"))
    assert repair(topic=topic_of(a="2", version=2), catalog_object=catalog_object) == "unchanged"


def test_deleted_topic_is_deleted_again():
    for scan in (None, scanned(wal=[(OLD, 0, CATALOG_MS)], objects=[(0, CATALOG_MS)])):
        assert repair(topic=topic_of(), catalog_object=catalog(), scan=scan) == (None, topic_of())


def test_topic_newer_than_the_catalog_is_kept():
    catalog_object = catalog(revision=40)
    assert repair(topic=topic_of(created=50), catalog_object=catalog_object) == "unchanged"


def test_topic_created_after_the_restore_is_kept():
    assert (
        repair(topic=topic_of(created=SINCE_REVISION + 1), catalog_object=catalog()) == "unchanged"
    )


def test_recreated_topic_has_the_later_id():
    for topic in (topic_of(OLD), topic_of(OLD, created=SINCE_REVISION + 1)):
        after, _ = repair(topic=topic, catalog_object=catalog(listed(NEW, 2)))
        assert (after.id, after.partitions, after.create_revision) == (NEW, 2, 0)


def test_catalog_older_than_the_topic_does_not_replace_it():
    catalog_object = catalog(listed(OLD), revision=40)
    assert repair(topic=topic_of(NEW, created=50), catalog_object=catalog_object) == "unchanged"


def test_topic_of_an_old_catalog_missing_in_the_snapshot_is_deleted():
    assert repair(catalog_object=catalog(listed(OLD), revision=SNAPSHOT_REVISION)) == "unchanged"


# --- tombstones -----------------------------------------------------------------------------------


def test_tombstone_is_kept_until_its_topic_is_deleted():
    for catalog_object in (None, catalog(), catalog(listed(OLD))):
        scan = scanned(wal=[(OLD, 0, CATALOG_MS)], objects=[(0, CATALOG_MS)])
        assert (
            repair(tombstone=topic_of(OLD), catalog_object=catalog_object, scan=scan) == "unchanged"
        )


def test_tombstone_is_removed_if_the_name_was_used_again():
    after, tombstone = repair(tombstone=topic_of(OLD), catalog_object=catalog(listed(NEW)))
    assert (after.id, tombstone) == (NEW, None)


def test_topic_of_a_name_that_was_used_before_has_its_id_in_keys():
    for former in ({"tombstone": topic_of(OLD)}, {"topic": topic_of(OLD)}):
        after, tombstone = repair(
            **former, catalog_object=catalog(), scan=scanned(wal=[(NEW, 0, CATALOG_MS)])
        )
        assert (after.id, after.directory) == (NEW, f"t@{NEW.hex()}")
        assert (tombstone.id, tombstone.emptied_ms) == (OLD, 99)
    entry = CatalogTopic("t", NEW.hex(), 1, id_in_keys=True)
    after, tombstone = repair(topic=topic_of(OLD), catalog_object=catalog(entry))
    assert (after.id, after.directory) == (NEW, f"t@{NEW.hex()}")
    assert tombstone.id == OLD
    scan = scanned()
    scan.objects[f"t@{NEW.hex()}"].add(2, CATALOG_MS)
    scan.objects["t"].add(0, LONG_AGO_MS)
    after, _ = repair(catalog_object=catalog(), scan=scan)
    assert (after.id, after.partitions, after.id_in_keys) == (NEW, 3, True)


def test_objects_of_an_unknown_topic_are_kept():
    scan = scanned(objects=[(2, LONG_AGO_MS)])
    scan.objects[f"t@{NEW.hex()}"].add(2, LONG_AGO_MS)
    assert repair(catalog_object=catalog(), scan=scan) == "unchanged"
    unverified = catalog(deleted=[NEW], cluster_id="theirs")
    _, tombstone = repair(catalog_object=unverified, scan=scan)
    assert tombstone is None


def test_objects_of_a_topic_that_the_catalog_lists_as_deleted_get_a_tombstone():
    scan = scanned(objects=[(2, LONG_AGO_MS)])
    scan.objects[f"t@{NEW.hex()}"].add(2, LONG_AGO_MS - 1)
    after, tombstone = repair(catalog_object=catalog(deleted=[NEW]), scan=scan)
    assert (after, tombstone.id, tombstone.directory) == (None, NEW, f"t@{NEW.hex()}")


def test_old_wal_records_alone_are_left_to_the_stream_cleanup():
    sources = {"catalog_object": catalog(), "scan": scanned(wal=[(NEW, 0, LONG_AGO_MS)])}
    assert repair(**sources) == "unchanged"
    assert evidence_of(**sources).deleted_ids() == {NEW}


def test_only_a_verified_newer_catalog_proves_that_wal_records_are_of_a_deleted_topic():
    in_wal = [(OLD, 0, LONG_AGO_MS), (NEW, 0, LONG_AGO_MS), (NEWER, 0, CATALOG_MS)]
    proven = evidence_of(
        topic=topic_of(NEW), catalog_object=catalog(listed(NEW)), scan=scanned(wal=in_wal)
    )
    assert proven.deleted_ids() == {OLD}
    for changes in (
        {"catalog_object": None},
        {"catalog_object": catalog(cluster_id="theirs")},
        {"catalog_object": catalog(), "known_revision": 0},
    ):
        assert evidence_of(scan=scanned(wal=in_wal), **changes).deleted_ids() == set()


def test_lost_metadata_delete_no_topic():
    after, tombstone = repair(
        catalog_object=catalog(), scan=scanned(objects=[(2, LONG_AGO_MS)]), known_revision=0
    )
    assert (after.partitions, tombstone) == (3, None)


# --- topics known by their records only -----------------------------------------------------------


def test_recently_written_topic_is_not_deleted():
    for catalog_object in (catalog(), None):
        after, _ = repair(
            catalog_object=catalog_object,
            scan=scanned(wal=[(NEW, 1, CATALOG_MS)], objects=[(3, 1)]),
        )
        assert (after.id, after.partitions) == (NEW, 4)
        after, _ = repair(catalog_object=catalog_object, scan=scanned(objects=[(1, CATALOG_MS)]))
        assert (after.id, after.partitions) == (RANDOM, 2)


def test_newest_of_several_topics_of_a_name_is_recreated():
    scan = scanned(wal=[(NEW, 7, CATALOG_MS + 1), (NEWER, 1, CATALOG_MS + 2)])
    after, _ = repair(catalog_object=catalog(), scan=scan)
    assert (after.id, after.partitions) == (NEWER, 2)
    after, _ = repair(topic=topic_of(OLD), catalog_object=catalog(), scan=scan)
    assert after.id == NEWER


def test_topic_created_since_is_replaced_by_the_one_with_records():
    created_since = topic_of(NEW, created=SINCE_REVISION + 1)
    after, tombstone = repair(
        topic=created_since, catalog_object=catalog(), scan=scanned(wal=[(OLD, 0, CATALOG_MS)])
    )
    assert (after.id, tombstone) == (OLD, None)
    for scan in (
        scanned(wal=[(OLD, 0, CATALOG_MS), (NEW, 0, CATALOG_MS)]),
        scanned(wal=[(OLD, 0, LONG_AGO_MS)]),
        scanned(objects=[(0, CATALOG_MS)]),
    ):
        assert repair(topic=created_since, catalog_object=catalog(), scan=scan) == "unchanged"


def test_unlisted_partitions_are_added():
    for catalog_object in (None, catalog(listed(OLD, 2))):
        after, _ = repair(
            topic=topic_of(),
            catalog_object=catalog_object,
            scan=scanned(wal=[(OLD, 4, CATALOG_MS)]),
        )
        assert (after.id, after.partitions) == (OLD, 5)
        after, _ = repair(
            topic=topic_of(), catalog_object=catalog_object, scan=scanned(objects=[(3, CATALOG_MS)])
        )
        assert (after.id, after.partitions) == (OLD, 4)


# --- which source is right ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "catalog_object",
    [None, catalog(cluster_id="another"), catalog(cluster_id=""), catalog(revision=0)],
    ids=["none", "another cluster's", "no cluster id", "no revision"],
)
def test_unverified_catalog_deletes_nothing(catalog_object):
    assert repair(topic=topic_of(), catalog_object=catalog_object) == "unchanged"
    after, _ = repair(catalog_object=catalog_object, scan=scanned(objects=[(0, 0)]))
    assert after is not None


def test_topics_of_another_clusters_catalog_replace_nothing():
    catalog_object = catalog(listed(NEW), cluster_id="another")
    assert repair(catalog_object=catalog_object)[0].id == NEW
    assert repair(topic=topic_of(OLD), catalog_object=catalog_object) == "unchanged"


def test_catalog_without_cluster_id_is_used_for_the_topics_it_lists():
    catalog_object = catalog(listed(NEW), cluster_id="", revision=0)
    assert repair(catalog_object=catalog_object)[0].id == NEW
    assert repair(topic=topic_of(OLD), catalog_object=catalog_object)[0].id == NEW


@pytest.mark.parametrize("topic_id", ["", "zz" * 16, "00"])
def test_invalid_topic_id_is_ignored(topic_id):
    assert repair(catalog_object=catalog(CatalogTopic("t", topic_id, 1))) == "unchanged"
