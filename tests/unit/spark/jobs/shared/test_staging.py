"""What runs have left behind is found, and nothing else is."""

from kafscale.spark.jobs.merge.grouping import Group
from kafscale.spark.jobs.shared import staging
from kafscale.spark.plan.offset_map import Extent
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import NAMESPACE, TOPIC, blocking, put_segment

AREA = f"{NAMESPACE}/{object_keys.STAGING_DIRECTORY}"


def group_of(store, *bases, end):
    keys = [put_segment(store, range(base, base + 10)) for base in bases]
    ends = [*bases[1:], end]
    return Group(
        TOPIC,
        0,
        tuple(
            Extent(base, until, key, 32, 100)
            for base, until, key in zip(bases, ends, keys, strict=True)
        ),
    )


def test_names_sort_by_offset_and_parse():
    group = Group(TOPIC, 3, (Extent(70, 80, "key", 32, 100),))
    job = staging.job_name("merge", "1234abcd", 70)
    key = staging.staged_key(NAMESPACE, job, group)
    assert key.startswith(object_keys.staging_prefix(NAMESPACE, job, TOPIC, 3))
    assert object_keys.parse_staged(NAMESPACE, key) == object_keys.SegmentRef(
        TOPIC, 3, 70, is_index=False
    )


def test_only_what_the_same_job_has_left_for_the_same_partitions_is_removed():
    kept = [
        f"{AREA}/compact-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{AREA}/merger-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{AREA}/merge-1-0/other/0/segment-00000000000000000000.kfs",
        f"{AREA}/merge-1-0/{TOPIC}/1/segment-00000000000000000000.kfs",
        f"{AREA}/merge-1-0/{TOPIC}/x/segment",
        f"{NAMESPACE}/{TOPIC}/0/segment-00000000000000000000.kfs",
    ]
    left = [
        f"{AREA}/merge-1-0/{TOPIC}/0/segment-00000000000000000000.kfs",
        f"{AREA}/merge-1-survivors/{TOPIC}/0/segment-00000000000000000000.offsets",
    ]
    with blocking() as store:
        for key in kept + left:
            store.put(key, [b"x"])
        assert staging.clear(store, NAMESPACE, "merge", {(TOPIC, 0)}) == left
        assert sorted(item.key for item in store.list(f"{NAMESPACE}/")) == sorted(kept)


def test_segments_are_known_by_their_checksums():
    with blocking() as store:
        group = group_of(store, 0, 10, end=20)
        first = store.run(lambda objects: staging.checksums(objects, group))
        assert len(set(first)) == 2
        put_segment(store, range(10, 25))
        assert store.run(lambda objects: staging.checksums(objects, group)) != first
        store.delete([group.sources[0].key])
        assert store.run(lambda objects: staging.checksums(objects, group)) is None
