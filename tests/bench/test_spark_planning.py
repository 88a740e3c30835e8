"""Planning over a topic of 100,000 segments: one listing, one footer, no index."""

import os
import shutil
import time

import pytest

from kafscale.spark.plan.task_planner import OffsetRange, plan
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

SEGMENTS = 100_000
RECORDS = 5
LINKS_MAX = 10_000
"""How many names one file may have, well below what file systems allow."""


def test_planning(comparisons, scaled, tmp_path):
    (tmp_path / "objects").mkdir()
    location = Location.parse(str(tmp_path))
    count = scaled(SEGMENTS)
    with location.open() as store:
        # Only the last one is looked into; the others are known by their names.
        put_segment(store, range((count - 1) * RECORDS, count * RECORDS))
        _link(location, count)
        comparison = comparisons.new(f"Spark: planning over {count:,} segments in local files")
        for _ in range(3):
            start = time.perf_counter()
            result = list_bucket(store, NAMESPACE, [TOPIC])
            surveyed = time.perf_counter()
            log = result.partitions[TOPIC, 0]
            tasks = plan(result, [OffsetRange(TOPIC, 0, log.start_offset, log.end_offset)])
            planned = time.perf_counter()
            assert len(log.extents) == count
            assert tasks
            comparison.add(
                "kafscale", {"listing s": surveyed - start, "plan s": planned - surveyed}
            )


def _link(location, count):
    place = (NAMESPACE, TOPIC, 0)
    for key_of in (object_keys.segment_key, object_keys.index_key):
        created = f"{location.directory}/{key_of(*place, (count - 1) * RECORDS)}"
        for number in range(count - 1):
            path = f"{location.directory}/{key_of(*place, number * RECORDS)}"
            if number % LINKS_MAX:
                os.link(created, path)
            else:
                created = shutil.copy(created, path)
