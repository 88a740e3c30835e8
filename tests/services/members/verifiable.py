"""A member of a group on Kafka's own Java client: the verifiable consumer of Kafka's system tests.

It commits after every poll and prints JSON of its own, which is put into our words here.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from services import java
from services.member_events import AnyEvent, Assigned, Committed, Ended, Read, Refused, Revoked
from services.members.orders import BATCH_RECORDS_MAX, Orders

TOOL = "org.apache.kafka.tools.VerifiableConsumer"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def command(told: Orders, directory: Path) -> list[str]:
    """How to start it; `directory` is for its settings."""
    settings = {
        "max.poll.records": BATCH_RECORDS_MAX,
        "fetch.max.wait.ms": 100,
        "reconnect.backoff.max.ms": 300,
    }
    arguments = [
        "--bootstrap-server",
        told.address,
        "--group-id",
        told.group,
        "--topic",
        told.topic,
        "--reset-policy",
        told.reset,
    ]
    if told.instance_id is not None:
        arguments += ["--group-instance-id", told.instance_id]
    if told.strategy == "consumer":
        arguments += ["--group-protocol", "consumer"]
    else:
        arguments += ["--assignment-strategy", ASSIGNORS[told.strategy]]
        arguments += ["--session-timeout", str(told.session_timeout_ms)]
        settings["heartbeat.interval.ms"] = told.heartbeat_interval_ms
    directory.mkdir(parents=True, exist_ok=True)
    properties = directory / "consumer.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    # While no broker is there, that of the new protocol takes all the time that the machine has,
    # and with it the broker's that is to come back.
    return ["nice", *java.command(TOOL, *arguments, "--consumer.config", str(properties))]


def events_of(line: str) -> Iterator[AnyEvent]:
    told = json.loads(line)
    at_ms = told["timestamp"]
    match told["name"]:
        case "partitions_assigned":
            yield Assigned(at_ms=at_ms, partitions=_numbers(told))
        case "partitions_revoked":
            yield Revoked(at_ms=at_ms, partitions=_numbers(told))
        case "records_consumed":
            for each in told["partitions"]:
                first, end = each["minOffset"], each["maxOffset"] + 1
                assert each["count"] == end - first, each
                yield Read(at_ms=at_ms, partition=each["partition"], first=first, end=end)
        case "offsets_committed" if told["success"]:
            for each in told["offsets"]:
                yield Committed(at_ms=at_ms, partition=each["partition"], offset=each["offset"])
        case "offsets_committed":
            yield Refused(at_ms=at_ms, error=told["error"])
        case "shutdown_complete":
            yield Ended(at_ms=at_ms)


def _numbers(told: dict[str, list[dict[str, int]]]) -> tuple[int, ...]:
    return tuple(sorted(each["partition"] for each in told["partitions"]))
