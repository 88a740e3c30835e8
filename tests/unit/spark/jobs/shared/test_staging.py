"""Keys and checksums of staged segments; only leftovers of the same job are deleted."""

from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.segment_group import SegmentGroup
from kafscale.spark.plan.offset_map import Extent
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import NAMESPACE, TOPIC, blocking, put_segment

STAGING = f"{NAMESPACE}/{object_keys.STAGING_DIRECTORY}"


def group_of(store, *bases, end):
    keys = [put_segment(store, range(base, base + 10)) for base in bases]
    ends = [*bases[1:], end]
    return SegmentGroup(
        TOPIC,
        0,
        tuple(
            Extent(base, until, key, 32, 100)
            for base, until, key in zip(bases, ends, keys, strict=True)
        ),
    )


def test_staged_keys_can_be_parsed():
    group = SegmentGroup(
        TOPIC, 3, (Extent(70, 80, object_keys.segment_key(NAMESPACE, TOPIC, 3, 70), 32, 100),)
    )
    name = staging.staging_name("merge", "1234abcd", 70)
    key = staging.staged_key(NAMESPACE, name, group)
    assert key.startswith(object_keys.staging_prefix(NAMESPACE, name, TOPIC, 3))
    assert object_keys.parse_staged(NAMESPACE, key) == object_keys.SegmentRef(
        TOPIC, 3, 70, is_index=False
    )


def test_only_leftovers_of_the_same_job_and_partitions_are_deleted():
    kept = [
        f"{STAGING}/compact-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{STAGING}/merger-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{STAGING}/merge-1-0/other/0/segment-00000000000000000000.kfs",
        f"{STAGING}/merge-1-0/{TOPIC}/1/segment-00000000000000000000.kfs",
        f"{STAGING}/merge-1-0/{TOPIC}/x/segment",
        f"{NAMESPACE}/{TOPIC}/0/segment-00000000000000000000.kfs",
    ]
    leftovers = [
        f"{STAGING}/merge-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{STAGING}/merge-1-survivors/{TOPIC}/0/segment-00000000000000000000.offsets",
    ]
    with blocking() as store:
        for key in kept + leftovers:
            store.put(key, [b"x"])
        assert staging.delete_leftovers(store, NAMESPACE, "merge", {(TOPIC, 0)}) == leftovers
        assert sorted(item.key for item in store.list(f"{NAMESPACE}/")) == sorted(kept)


def test_checksums_change_with_the_segments():
    with blocking() as store:
        group = group_of(store, 0, 10, end=20)
        first = store.run(lambda objects: staging.read_checksums(objects, group))
        assert len(set(first)) == 2
        put_segment(store, range(10, 25))
        assert store.run(lambda objects: staging.read_checksums(objects, group)) != first
        store.delete([group.sources[0].key])
        assert store.run(lambda objects: staging.read_checksums(objects, group)) is None
