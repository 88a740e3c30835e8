"""The health of a cluster, with reasons, evaluated from a snapshot. Pure.

| state | when |
|---|---|
| `down` | no broker responds, or none of them serves clients |
| `degraded` | something is wrong; the reasons say what |
| `healthy` | nothing is wrong |

Every state but `healthy` has a reason, which is a sentence that an operator can act on. There are
few reasons: a problem of many topics is reported once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from kafscale.admin.cluster.broker import DRAINING, NOT_READY, UNREACHABLE, BrokerStatus
from kafscale.admin.cluster.metadata_health import (
    DEGRADED,
    HEALTHY,
    UNAVAILABLE,
    UNKNOWN,
    MetadataHealth,
)
from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.admin.topics.usage import TopicUsage
from kafscale.text.formatting import pluralize

Severity = Literal["warning", "critical"]
State = Literal["healthy", "degraded", "down"]

TOPICS_LISTED_MAX: Final = 5
BROKERS_LISTED_MAX: Final = 20

_STORE_ORDER: Final = (HEALTHY, DEGRADED, UNAVAILABLE)


class Reason(msgspec.Struct, frozen=True):
    """One problem."""

    severity: Severity
    subject: str
    """Such as `broker 2`, `S3`, `etcd` or `topic orders`."""
    sentence: str


class Health(msgspec.Struct, frozen=True):
    state: State
    reasons: tuple[Reason, ...]


def evaluate(
    snapshot: ClusterSnapshot,
    topics: Mapping[str, TopicUsage],
    metadata: MetadataHealth,
    gone: Collection[int] = (),
) -> Health:
    """Evaluate a cluster; `gone` are brokers that left recently without being drained."""
    if snapshot.problem is not None and not snapshot.brokers:
        sentence = f"No broker responds: {snapshot.problem}"
        return Health("down", (Reason("critical", "cluster", sentence),))
    reasons = [
        *_broker_reasons(snapshot, gone),
        *_store_reasons(snapshot),
        *_metadata_reasons(metadata),
        *_topic_reasons(topics.values()),
        *_listing_reasons(snapshot),
    ]
    reasons.sort(key=lambda each: each.severity != "critical")
    is_serving = any(each.state not in {UNREACHABLE, NOT_READY} for each in snapshot.brokers)
    if not is_serving:
        return Health("down", tuple(reasons))
    return Health("degraded" if reasons else "healthy", tuple(reasons))


def store_state(brokers: Iterable[BrokerStatus]) -> str | None:
    """The worst state of the object store that a broker reports; None if no broker does."""
    states = {each.store_health for each in brokers}
    return next((state for state in reversed(_STORE_ORDER) if state in states), None)


def _broker_reasons(snapshot: ClusterSnapshot, gone: Collection[int]) -> Iterator[Reason]:
    if snapshot.controller is None:
        yield Reason(
            "critical", "cluster", "There is no controller: partitions are not reassigned."
        )
    for broker_id in sorted(gone)[:BROKERS_LISTED_MAX]:
        yield Reason(
            "critical",
            f"broker {broker_id}",
            "It left without being drained: it was killed, or lost its network connection."
            " Other brokers take over its partitions.",
        )
    reasons = [reason for each in snapshot.brokers if (reason := _broker_reason(each))]
    yield from reasons[:BROKERS_LISTED_MAX]


def _broker_reason(broker: BrokerStatus) -> Reason | None:
    subject = f"broker {broker.id}"
    if broker.state == UNREACHABLE:
        return Reason("critical", subject, f"It does not respond. {_format_problems(broker)}")
    if broker.state == NOT_READY:
        return Reason("critical", subject, f"It does not serve clients. {_format_problems(broker)}")
    if broker.state == DRAINING:
        return Reason(
            "warning", subject, "It is being drained: its partitions move to other brokers."
        )
    if broker.metrics is None and broker.metrics_problem:
        return Reason("warning", subject, f"Its metrics cannot be read: {broker.metrics_problem}")
    return None


def _store_reasons(snapshot: ClusterSnapshot) -> Iterator[Reason]:
    state = store_state(snapshot.brokers)
    if state == UNAVAILABLE:
        yield Reason(
            "critical", "S3", "The object store is unavailable: brokers acknowledge no writes."
        )
    elif state == DEGRADED:
        yield Reason("warning", "S3", "The object store is slow or fails some requests.")


def _metadata_reasons(metadata: MetadataHealth) -> Iterator[Reason]:
    if metadata.state in {HEALTHY, UNKNOWN}:
        return
    severity: Severity = "critical" if metadata.state == UNAVAILABLE else "warning"
    ready = f"{metadata.ready_count} of {pluralize(metadata.member_count, 'member')} ready"
    sentence = metadata.problem or "Metadata changes do not arrive."
    yield Reason(severity, metadata.kind, f"{ready}. {sentence}")


def _topic_reasons(topics: Iterable[TopicUsage]) -> Iterator[Reason]:
    leaderless = [each for each in topics if each.leaderless_count]
    for each in leaderless[:TOPICS_LISTED_MAX]:
        yield Reason(
            "critical",
            f"topic {each.name}",
            f"{each.leaderless_count} of {pluralize(each.partition_count, 'partition')}"
            " have no leader: they cannot be read or written.",
        )
    if more := leaderless[TOPICS_LISTED_MAX:]:
        yield Reason(
            "critical",
            "topics",
            f"Partitions of {pluralize(len(more), 'further topic')} have no leader either.",
        )


def _listing_reasons(snapshot: ClusterSnapshot) -> Iterator[Reason]:
    if snapshot.listing_problem is not None:
        yield Reason(
            "warning", "Kafka", f"Cannot list topics or groups: {snapshot.listing_problem}"
        )


def _format_problems(broker: BrokerStatus) -> str:
    return " ".join(f"{name}: {why}." for name, why in sorted(broker.problems.items()))
