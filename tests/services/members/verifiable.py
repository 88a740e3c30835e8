"""A group member on Kafka's Java client: the VerifiableConsumer of Kafka's system tests.

It commits after every poll and prints JSON of its own, which `events_of` converts.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from services import java
from services.member_events import (
    AnyEvent,
    Assigned,
    CommitRejected,
    Committed,
    Ended,
    Read,
    Revoked,
)
from services.members.options import BATCH_RECORDS_MAX, MemberOptions

TOOL = "org.apache.kafka.tools.VerifiableConsumer"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def command(options: MemberOptions, directory: Path) -> list[str]:
    """The command that starts it; `directory` holds its properties file."""
    settings = {
        "max.poll.records": BATCH_RECORDS_MAX,
        "fetch.max.wait.ms": 100,
        "reconnect.backoff.max.ms": 300,
    }
    arguments = [
        "--bootstrap-server",
        options.address,
        "--group-id",
        options.group,
        "--topic",
        options.topic,
        "--reset-policy",
        options.reset,
    ]
    if options.instance_id is not None:
        arguments += ["--group-instance-id", options.instance_id]
    if options.strategy == "consumer":
        arguments += ["--group-protocol", "consumer"]
    else:
        arguments += ["--assignment-strategy", ASSIGNORS[options.strategy]]
        arguments += ["--session-timeout", str(options.session_timeout_ms)]
        settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
    directory.mkdir(parents=True, exist_ok=True)
    properties = directory / "consumer.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    # While no broker is available, the KIP-848 consumer spins and would slow the broker's restart.
    return ["nice", *java.command(TOOL, *arguments, "--consumer.config", str(properties))]


def events_of(line: str) -> Iterator[AnyEvent]:
    event = json.loads(line)
    at_ms = event["timestamp"]
    match event["name"]:
        case "partitions_assigned":
            yield Assigned(at_ms=at_ms, partitions=_partition_indexes(event))
        case "partitions_revoked":
            yield Revoked(at_ms=at_ms, partitions=_partition_indexes(event))
        case "records_consumed":
            for each in event["partitions"]:
                first, end = each["minOffset"], each["maxOffset"] + 1
                assert each["count"] == end - first, each
                yield Read(at_ms=at_ms, partition=each["partition"], first=first, end=end)
        case "offsets_committed" if event["success"]:
            for each in event["offsets"]:
                yield Committed(at_ms=at_ms, partition=each["partition"], offset=each["offset"])
        case "offsets_committed":
            yield CommitRejected(at_ms=at_ms, error=event["error"])
        case "shutdown_complete":
            yield Ended(at_ms=at_ms)


def _partition_indexes(event: dict[str, list[dict[str, int]]]) -> tuple[int, ...]:
    return tuple(sorted(each["partition"] for each in event["partitions"]))
