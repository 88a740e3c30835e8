"""Chooses the current one of several topics that have, or had, the same name. Pure.

A topic that was deleted and created again has another id and another directory. The catalog says
which topic is the current one. An id that it lists neither as current nor as deleted is newer than
the catalog. Of a topic that it does not list, the id and the directory that were written last
count.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kafscale.spark.plan.offset_map import WalRun
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.text.topic_partition import TopicPartition

WalRuns = dict[TopicPartition, list[WalRun]]


def without_deleted(deleted_ids: AbstractSet[bytes], runs: WalRuns) -> WalRuns:
    """The runs of topics that are not deleted: a write of a deleted one may take effect late."""
    return {
        topic_partition: [run for run in partition_runs if run.topic_id not in deleted_ids]
        for topic_partition, partition_runs in runs.items()
    }


def newer_topics(
    listed: Mapping[str, CatalogTopic], catalog_ms: int, runs: WalRuns
) -> dict[str, CatalogTopic]:
    """Topics that replaced a listed one of the same name after the catalog was written."""
    newest: dict[str, WalRun] = {}
    counts: dict[tuple[str, bytes], int] = {}
    for (name, partition), partition_runs in runs.items():
        for run in partition_runs:
            if name not in listed or run.topic_id == listed[name].id:
                continue
            counts[name, run.topic_id] = max(counts.get((name, run.topic_id), 0), partition + 1)
            written_ms = newest[name].modified_ms if name in newest else catalog_ms
            if run.modified_ms >= written_ms:
                newest[name] = run
    return {
        name: CatalogTopic(name, run.topic_id.hex(), counts[name, run.topic_id], id_in_keys=True)
        for name, run in newest.items()
    }


def current_runs(runs: WalRuns, catalog: Mapping[str, CatalogTopic]) -> WalRuns:
    """Drop the runs of earlier topics of the same names."""
    current = {name: topic.id for name, topic in catalog.items()}
    all_runs = [(name, run) for (name, _), of_one in runs.items() for run in of_one]
    for name, run in sorted(all_runs, key=lambda each: each[1].modified_ms):
        if name not in catalog:
            current[name] = run.topic_id
    return {
        (name, partition): [run for run in partition_runs if run.topic_id == current[name]]
        for (name, partition), partition_runs in runs.items()
        if partition_runs
    }
