"""Tools about the cluster as a whole: status, health, metrics, cost and pipeline jobs."""

import asyncio

import msgspec

from kafscale.admin import jobs
from kafscale.admin.cluster import broker as cluster_broker
from kafscale.admin.cluster import cost, health, lag, metadata_health
from kafscale.admin.cluster.metrics import BrokerMetrics
from kafscale.admin.cluster.snapshot import ClusterSnapshot, take_snapshot
from kafscale.admin.connection import ClusterConnections
from kafscale.admin.topics import usage
from kafscale.aio.clock import clock
from kafscale.mcp.tool import Data, Tool, bounded, to_json
from kafscale.storage.job_runs import JobRun
from kafscale.text.formatting import format_time

METRICS_SECONDS = 2.0
"""The time between two samples of a counter, from which its rate is computed."""
_BROKER_FIELDS = tuple(
    each
    for each in cluster_broker.BrokerStatus.__struct_fields__
    if each not in {"partitions", "metrics", "metrics_problem"}
)


class ClusterTools:
    """The tools, each a method."""

    def __init__(self, connections: ClusterConnections) -> None:
        self._connections = connections

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.cluster_status, "Status of the cluster"),
            Tool(self.cluster_health, "Health of the cluster"),
            Tool(self.cluster_metrics, "Metrics of the brokers"),
            Tool(self.storage_cost, "Cost of the object store"),
            Tool(self.pipeline_runs, "Runs of pipeline jobs"),
        )

    async def cluster_status(self) -> Data:
        """Brokers with their states, the controller, and how many topics and groups there are."""
        snapshot = await take_snapshot(self._connections)
        topics = [each for each in usage.topic_usage(snapshot).values() if not each.internal]
        return {
            "clusterId": snapshot.cluster_id,
            "controller": snapshot.controller,
            "records": self._connections.store_description,
            "topicCount": len(topics),
            "partitionCount": sum(each.partition_count for each in topics),
            "groupCount": len(snapshot.groups),
            "storedBytes": usage.stored_bytes(snapshot),
            "problem": snapshot.problem,
            **bounded("brokers", [_broker(each) for each in snapshot.brokers]),
        }

    async def cluster_health(self) -> Data:
        """Whether the cluster is healthy, degraded or down, with all reasons."""
        snapshot, members = await asyncio.gather(
            take_snapshot(self._connections),
            metadata_health.check_etcd(self._connections.config.etcd),
        )
        topics = usage.topic_usage(snapshot)
        result = health.evaluate(snapshot, topics, metadata_health.evaluate(members, snapshot))
        return {"state": result.state, "reasons": msgspec.to_builtins(result.reasons)}

    async def cluster_metrics(self) -> Data:
        """Throughput, requests, connections and S3 error rate of each broker, measured now."""
        before, after = await self._two_snapshots()
        seconds = max(after.at_ms - before.at_ms, 1) / 1000
        earlier = {each.id: each.metrics for each in before.brokers}
        rows = [
            {"broker": each.id, **_rates(earlier.get(each.id), each.metrics, seconds)}
            for each in after.brokers
        ]
        return {
            "overSeconds": round(seconds, 1),
            "consumerLag": lag.total(lag.from_snapshot(after)),
            **bounded("brokers", rows),
        }

    async def storage_cost(self) -> Data:
        """The cost of the object store per day at list prices, from stored bytes and requests."""
        before, after = await self._two_snapshots()
        result = cost.cost(
            usage.stored_bytes(after),
            _operations_per_second(before, after),
            is_charged=bool(self._connections.config.s3.bucket),
        )
        return to_json(result)

    async def pipeline_runs(self, limit: int = 20) -> Data:
        """The last runs of the data pipeline's jobs, newest first, with their results."""
        by_job = await jobs.recent_runs(self._connections, clock())
        runs = sorted(
            (run for runs in by_job.values() for run in runs),
            key=lambda run: run.started_at_ms,
            reverse=True,
        )
        return bounded("runs", [_run(each) for each in runs], limit)

    async def _two_snapshots(self) -> tuple[ClusterSnapshot, ClusterSnapshot]:
        """Two snapshots, far enough apart to compute rates."""
        before = await take_snapshot(self._connections)
        await asyncio.sleep(METRICS_SECONDS)
        return before, await take_snapshot(self._connections)


def _broker(broker: cluster_broker.BrokerStatus) -> Data:
    return to_json(broker, _BROKER_FIELDS) | {"figuresProblem": broker.metrics_problem}


def _rates(before: BrokerMetrics | None, after: BrokerMetrics | None, seconds: float) -> Data:
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


def _operations_per_second(before: ClusterSnapshot, after: ClusterSnapshot) -> dict[str, float]:
    seconds = max(after.at_ms - before.at_ms, 1) / 1000
    rates: dict[str, float] = {}
    earlier = {each.id: each.metrics for each in before.brokers}
    for broker in after.brokers:
        old = earlier.get(broker.id)
        if broker.metrics is None or old is None:
            continue
        for name, operation in broker.metrics.operations.items():
            previous = old.operations.get(name)
            count = max(operation.total - (previous.total if previous else 0), 0)
            rates[name] = rates.get(name, 0.0) + count / seconds
    return rates


def _run(run: JobRun) -> Data:
    return to_json(run) | {"startedAt": format_time(run.started_at_ms)}
