"""One round: clients work on their own topic while faults are injected, and their histories are
checked when all faults have ended.

The final reader runs after all brokers were killed and started again, so that it reads only what
is in the stores.
"""

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from chaos.anomalies import Anomaly
from chaos.checker import check, check_compacted, check_transactions
from chaos.clients.compacted_topic import TOPIC_CONFIGS
from chaos.history import AnyEvent, Consumer, Poll, Send, Transaction, read
from chaos.history_statistics import Statistics, statistics
from chaos.nemesis import FaultAction, Nemesis
from chaos.schedule import LATE_S_MAX, ClusterShape, Outage, Step, plan
from chaos.workload import (
    COMPACTED_PARTITIONS,
    TRANSACTIONAL_PARTITIONS,
    Workload,
    WorkloadOptions,
    compacted_topic,
    transactional_topic,
)
from services.cluster import Cluster
from services.node import UnexpectedExit
from services.waiting import wait_until

PARTITIONS = 6
CREATE_S_MAX = 60
RECOVER_S_MAX = 60
LATE_SHARE_MAX = 0.4
"""The share of a round by which requests are late at most."""


@dataclass
class Outcome:
    """The result of a round."""

    seed: int
    duration_s: float
    steps: list[Step]
    began_ns: int
    actions: list[FaultAction]
    statistics: Statistics
    injected: Counter[str]
    """Requests that links delayed, answered or lost; deletions of the topic; merges; records that
    compaction removed; transactions by outcome."""
    anomalies: list[Anomaly]
    failures: list[str] = field(default_factory=list)
    """Clients that exited with an error, and tracebacks of brokers."""
    unexpected_exits: list[UnexpectedExit] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.anomalies and not self.failures

    @property
    def acknowledged_per_s(self) -> float:
        return self.statistics.counts.get("acknowledged", 0) / self.duration_s

    def __str__(self) -> str:
        pause = self.statistics.longest_pause
        began_s = (pause.began_ns - self.began_ns) / 1e9
        return (
            f"seed {self.seed}: {self.statistics.operations:,} operations,"
            f" {self.acknowledged_per_s:.0f} records/s acknowledged, {len(self.steps)} faults,"
            f" injected {', '.join(f'{name}: {count}' for name, count in self.injected.items())},"
            f" longest pause {pause.seconds:.1f} s in {pause.partition} from {began_s:.1f} s on,"
            f" {'ok' if self.is_ok else 'FAILED'}"
        )


def run_round(
    cluster: Cluster,
    directory: Path,
    *,
    seed: int,
    duration_s: float,
    lease_s: float,
    outages: Sequence[Outage] = (),
) -> Outcome:
    """Run one round; delete its files if it was successful."""
    late_s_max = min(LATE_S_MAX, duration_s * LATE_SHARE_MAX)
    shape = ClusterShape(tuple(cluster.nodes), len(cluster.etcd.members), lease_s, late_s_max)
    steps = plan(seed, duration_s, shape, outages)
    topic = f"chaos-{seed}"
    workload = Workload(_options(cluster, topic, directory, seed))
    exits_before = len(cluster.unexpected_exits)
    tracebacks_before = len(cluster.tracebacks())
    injected_before = _injected(cluster)
    cluster.wait_until_serving()
    _create(cluster, topic)
    began_ns = time.monotonic_ns()
    nemesis = Nemesis(cluster, steps, should_stop=lambda: False)
    with workload.running_clients():
        nemesis.work(duration_s)
        wait_until(lambda: not _late_pending(cluster), "late requests", seconds_max=late_s_max + 30)
        cluster.wait_until_serving(RECOVER_S_MAX)
        workload.run("recovery-check")
    cluster.restart()
    workload.run("final")
    workload.run_on_recreated("recreator-final")
    workload.run_on_compacted("compacted-final")
    workload.run_on_transactional("committed-final")
    transactional = list(read(workload.transactional_histories))
    compacted = list(read(workload.compacted_histories))
    recreated = statistics(read(workload.recreated_histories)).counts
    seen = statistics(read(workload.histories))
    merges = {name: seen.counts.pop(name, 0) for name in ("merges", "failed merges")}
    deletions = {"topic deletions": recreated.get("topic deletions", 0)}
    outcome = Outcome(
        seed,
        (time.monotonic_ns() - began_ns) / 1e9,
        steps,
        began_ns,
        nemesis.actions,
        seen,
        (_injected(cluster) - injected_before)
        + Counter(merges | deletions | {"compacted records": _count_removed(compacted)})
        + _count_transactions(transactional),
        check(read(workload.histories))
        + check(read(workload.recreated_histories))
        + check_compacted(compacted)
        + check_transactions(transactional),
        workload.failures + cluster.tracebacks()[tracebacks_before:],
        cluster.unexpected_exits[exits_before:],
    )
    if outcome.is_ok:
        shutil.rmtree(directory)
    return outcome


def _options(cluster: Cluster, topic: str, directory: Path, seed: int) -> WorkloadOptions:
    bucket = cluster.s3.bucket
    return WorkloadOptions(
        cluster.bootstrap,
        topic,
        PARTITIONS,
        directory,
        seed,
        tuple(cluster.console_settings()["control_servers"].split(",")),
        {
            "name": bucket.name,
            "endpoint": bucket.endpoint,
            "access_key": bucket.access_key,
            "secret_key": bucket.secret_key,
        },
    )


def _create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [
        NewTopic(topic, PARTITIONS),
        NewTopic(compacted_topic(topic), COMPACTED_PARTITIONS, config=TOPIC_CONFIGS),
        NewTopic(transactional_topic(topic), TRANSACTIONAL_PARTITIONS),
    ]
    for created in admin.create_topics(topics, request_timeout=CREATE_S_MAX).values():
        created.result(CREATE_S_MAX)


def _count_removed(events: Sequence[AnyEvent]) -> int:
    """How many acknowledged records of the compacted topic the last reader of all did not get."""
    acknowledged = sum(isinstance(event, Send) and event.kind == "ok" for event in events)
    finals = {each.process for each in events if isinstance(each, Consumer) and each.is_final}
    read_count = sum(
        len(records)
        for event in events
        if isinstance(event, Poll) and event.process in finals
        for records in event.records.values()
    )
    return max(acknowledged - read_count, 0)


def _count_transactions(events: Sequence[AnyEvent]) -> Counter[str]:
    decided = [each for each in events if isinstance(each, Transaction) and each.kind == "ok"]
    verdicts = Counter(each.verdict for each in decided)
    return Counter({"commits": verdicts["commit"], "aborts": verdicts["abort"]})


def _injected(cluster: Cluster) -> Counter[str]:
    """What the links to the stores have injected since their start."""
    counts: Counter[str] = Counter()
    for link in cluster.network.names:
        seen = cluster.network.counts(link)
        service = next((name for name in ("s3", "etcd") if f"to {name}" in link), "clients")
        counts[f"{service} late"] += seen.late
        counts[f"{service} held"] += seen.held
        counts[f"{service} errors"] += seen.errors
        counts[f"{service} lost"] += seen.lost
    return counts


def _late_pending(cluster: Cluster) -> int:
    return sum(cluster.network.counts(link).late_pending for link in cluster.network.names)
