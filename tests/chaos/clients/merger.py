"""Merges the segments of topics again and again, as the merge job does without Spark.

It builds and stages segments with the job's own functions, and the owners of the partitions swap
them in. Errors are expected while faults are injected: the next run handles the same segments.
"""

import os
import random
import threading
import time

from chaos.clients.options import ClientOptions, StopSignal
from chaos.history import Journal, Merge, now_ns
from kafscale.errors import KafscaleError
from kafscale.spark.jobs.merge import job
from kafscale.spark.jobs.shared.segment_group import SegmentGroup
from kafscale.spark.jobs.shared.segment_install import (
    RewriteSettings,
    SegmentInstaller,
    build_or_skip,
    ignore_step,
)
from kafscale.spark.jobs.shared.staging import StagedSegment
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import DEFAULT_NAMESPACE, Location
from kafscale.storage.objects.s3.bucket_config import S3Bucket

PAUSE_S = (0.5, 4)
TARGET_BYTES = 1 << 20
"""Several times the segment size of the brokers."""


def merge(options: ClientOptions, stop_signal: StopSignal) -> None:
    """Merge until the end; a run that is in progress then is aborted, which must be harmless."""
    assert options.bucket is not None
    bucket = S3Bucket(**options.bucket, path_style=True)
    settings = RewriteSettings(
        location=Location(namespace=DEFAULT_NAMESPACE, bucket=bucket),
        control=options.control,
        target_bytes=TARGET_BYTES,
    )
    rng = random.Random(options.seed)
    journal = options.journal(0)

    def work() -> None:
        while not stop_signal.is_set:
            try:
                _merge_once(settings, rng, journal)
            except KafscaleError as error:
                print(error, flush=True)  # noqa: T201 - the log of this client.
            stop_signal.wait(rng.uniform(*PAUSE_S))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while worker.is_alive() and not stop_signal.is_set:
        stop_signal.wait(1)
    os._exit(0 if stop_signal.is_set else 1)


def _merge_once(settings: RewriteSettings, rng: random.Random, journal: Journal) -> None:
    installer = settings.installer(job.JOB, rng, progress=False, on_step=ignore_step)
    with settings.location.open() as store:
        offset_map = list_bucket(store, settings.location.namespace)
        installer.clear_staging(store, list(offset_map.partitions))
        staged = _stage(installer, list(job.plan(offset_map, settings.target_bytes)))
        outcomes = installer.swap(store, staged)
    for outcome in outcomes:
        sources = len(outcome.staged.group.sources)
        event = Merge(journal.process, now_ns(), sources, outcome.problem)
        journal.write(event)


def _stage(installer: SegmentInstaller, groups: list[SegmentGroup]) -> list[StagedSegment]:
    now_ms = time.time_ns() // 1_000_000

    def build(group: SegmentGroup) -> StagedSegment:
        return job.merge_group(installer.location, installer.run_id, now_ms, group)

    results = [build_or_skip(build, lambda group: group.topic_partition, each) for each in groups]
    return [each for each in results if isinstance(each, StagedSegment)]
