"""What an assistant can ask of a cluster as a whole: its brokers, its health, figures and cost."""

import asyncio

import msgspec

from kafscale.admin import jobs
from kafscale.admin.cluster import broker as cluster_broker
from kafscale.admin.cluster import cost, health, lag, metadata_health
from kafscale.admin.cluster.figures import Figures
from kafscale.admin.cluster.snapshot import ClusterLook, cluster_look
from kafscale.admin.connection import Reach
from kafscale.admin.topics import usage
from kafscale.mcp.tool import Data, Tool, bounded, told
from kafscale.storage.job_runs import JobRun
from kafscale.text.formatting import clock, iso_time

METRICS_SECONDS = 2.0
"""How long counters are watched to know how fast they grow."""


class ClusterTools:
    """The tools, each a method."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.cluster_status, "Status of the cluster"),
            Tool(self.cluster_health, "Health of the cluster"),
            Tool(self.cluster_metrics, "Figures of the brokers"),
            Tool(self.storage_cost, "Cost of the object store"),
            Tool(self.pipeline_runs, "Runs of pipeline jobs"),
        )

    async def cluster_status(self) -> Data:
        """Brokers with their states, the controller, and how many topics, partitions and groups."""
        look = await cluster_look(self._reach)
        topics = usage.topic_figures(look)
        return {
            "clusterId": look.cluster_id,
            "controller": look.controller,
            "records": self._reach.place,
            "topicCount": len(topics),
            "partitionCount": sum(each.partition_count for each in topics.values()),
            "groupCount": len(look.groups),
            "storedBytes": usage.stored_bytes(look),
            "problem": look.problem,
            **bounded("brokers", [_broker(each) for each in look.brokers]),
        }

    async def cluster_health(self) -> Data:
        """Whether the cluster is healthy, degraded or down, and every reason why."""
        look, members = await asyncio.gather(
            cluster_look(self._reach), metadata_health.etcd_look(self._reach.config.etcd)
        )
        topics = usage.topic_figures(look)
        found = health.health(look, topics, metadata_health.metadata_look(members, look))
        return {"state": found.state, "reasons": msgspec.to_builtins(found.reasons)}

    async def cluster_metrics(self) -> Data:
        """Throughput, requests, connections and S3 requests a second of each broker, just now."""
        before, after = await self._two_looks()
        seconds = max(after.at_ms - before.at_ms, 1) / 1000
        earlier = {each.id: each.figures for each in before.brokers}
        rows = [
            {"broker": each.id, **_rates(earlier.get(each.id), each.figures, seconds)}
            for each in after.brokers
        ]
        return {
            "overSeconds": round(seconds, 1),
            "consumerLag": lag.total(lag.of_look(after)),
            **bounded("brokers", rows),
        }

    async def storage_cost(self) -> Data:
        """What the object store costs a day at list prices, from bytes kept and requests made."""
        before, after = await self._two_looks()
        found = cost.cost(
            usage.stored_bytes(after),
            _operations_per_second(before, after),
            is_charged=bool(self._reach.config.s3.bucket),
        )
        return {
            "storagePerDay": found.storage_per_day,
            "requestsPerDay": found.requests_per_day,
            "totalPerDay": found.total_per_day,
            "currency": found.currency,
            "basis": found.basis,
        }

    async def pipeline_runs(self, limit: int = 20) -> Data:
        """The last runs of the data pipeline's jobs, the newest first, with their results."""
        by_job = await jobs.recent_runs(self._reach, clock())
        runs = sorted(
            (run for runs in by_job.values() for run in runs),
            key=lambda run: run.started_at_ms,
            reverse=True,
        )
        return bounded("runs", [_run(each) for each in runs], limit)

    async def _two_looks(self) -> tuple[ClusterLook, ClusterLook]:
        """So far apart that what grew between them tells how fast it grows."""
        before = await cluster_look(self._reach)
        await asyncio.sleep(METRICS_SECONDS)
        return before, await cluster_look(self._reach)


def _broker(broker: cluster_broker.BrokerLook) -> Data:
    return told(broker, without=("figures", "partitions"))


def _rates(before: Figures | None, after: Figures | None, seconds: float) -> Data:
    if before is None or after is None:
        return {"problem": "its metrics could not be read"}

    def rate(old: float, new: float) -> float:
        return round(max(new - old, 0) / seconds, 3)

    return {
        "connections": after.connections,
        "produceBytesPerSecond": rate(
            sum(before.produce_bytes.values()), sum(after.produce_bytes.values())
        ),
        "fetchBytesPerSecond": rate(
            sum(before.fetch_bytes.values()), sum(after.fetch_bytes.values())
        ),
        "produceRequestsPerSecond": rate(before.produce_requests, after.produce_requests),
        "fetchRequestsPerSecond": rate(before.fetch_requests, after.fetch_requests),
        "storeErrorRate": after.error_rate,
    }


def _operations_per_second(before: ClusterLook, after: ClusterLook) -> dict[str, float]:
    seconds = max(after.at_ms - before.at_ms, 1) / 1000
    grown: dict[str, float] = {}
    earlier = {each.id: each.figures for each in before.brokers}
    for broker in after.brokers:
        old = earlier.get(broker.id)
        if broker.figures is None or old is None:
            continue
        for name, operation in broker.figures.operations.items():
            was = old.operations.get(name)
            count = max(operation.total - (was.total if was else 0), 0)
            grown[name] = grown.get(name, 0.0) + count / seconds
    return grown


def _run(run: JobRun) -> Data:
    return told(run) | {"startedAt": iso_time(run.started_at_ms)}
